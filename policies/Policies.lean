import LeanGuard
import LeanGuard.Repair.Tactic
import LeanGuard.Wire.Repair
import AirlineRepair
import RetailRepair
import TelecomRepair

/-! # The policies that the checkpoint knows. To add one, import its file and list it. -/

namespace LeanGuard

/-- Each policy with what a repair may change; `Intent.fixed` for nothing. -/
def domains : List Domain := [
  domain! Retail.policy Retail.intent, domain! Airline.policy Airline.intent, domain! Telecom.policy Telecom.intent]

def policies : List Policy := domains.map (·.policy)

/-- Decides one call, asked as text: a JSON object with `call`, `snapshot` and `journal`. Prints the answer as JSON. -/
def admitJson (policy request : String) : IO Unit :=
  IO.println (Wire.admitText policies policy request).compress

end LeanGuard
