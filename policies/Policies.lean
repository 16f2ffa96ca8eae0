import LeanGuard
import Airline
import Retail
import Telecom

/-! # The policies that the checkpoint knows. To add one, import its file and list it. -/

namespace LeanGuard

def policies : List Policy := [Retail.policy, Airline.policy, Telecom.policy]

/-- Decides one call, asked as text: a JSON object with `call`, `snapshot` and `journal`. Prints the answer as JSON. -/
def admitJson (policy request : String) : IO Unit :=
  IO.println (Wire.admitText policies policy request).compress

end LeanGuard
