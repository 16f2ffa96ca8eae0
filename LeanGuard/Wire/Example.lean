import LeanGuard.Eval.Admission
import LeanGuard.Wire.Decode

/-!
# Examples beside a policy

An example is a JSON object with `call`, `snapshot` and `journal` (oldest event first), as on the wire. A policy file tells what is to come of it with
`#guard`, and each build decides it.
-/

namespace LeanGuard

open Lean (Json)
open Wire

/-- What stands in the way of an example's call: the failed rules, and behind `!` those that could not be evaluated. It is admitted exactly if
there is nothing. -/
def denials (policy : Policy) (text : String) : List String :=
  let decision : Except WireError Decision := do
    let json ← (Json.parse text).mapError fun e => ⟨"", s!"not JSON: {e}"⟩
    let o ← object ["call", "snapshot", "journal"] json
    let events ← o.required "journal" (listOf event)
    return policy.decide (← o.required "call" Wire.call) (← o.required "snapshot" Wire.snapshot) events.reverse
  match decision with
  | .ok .admit => []
  | .ok (.deny failed errors) => failed.map (·.id) ++ (errors.map fun e => "!" ++ e.rule)
  | .error e => [s!"no example: {e.path}: {e.message}"]

end LeanGuard
