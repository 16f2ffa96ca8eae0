import LeanGuard.Repair.Facts
import LeanGuard.Repair.Rules
import LeanGuard.Thm.Repair
import Telecom

/-!
# Telecom: what a repair may change

The customer wants an overdue bill paid: which of their bills that is, the account says. They want data on a line: as much as may still be
refuelled stands in for more, never for less. The customer and the line stay, because no source is about them.
-/

namespace LeanGuard.Telecom

/-- The overdue bills of the customer. -/
def overdueBills (p : Pending) : Read (List Value) := do
  let own ← (← p.row customers (← p.customer)).needSymbols bill_ids
  let statuses ← own.mapM fun id => return (id, ← (← p.row bills id).needSymbol status)
  return (statuses.filter (·.2 == sym!"Overdue")).map (.sym ·.1)

/-- What may still be refuelled on the line, where the call asks for more. -/
def restOfData (p : Pending) : Read (List Value) := do
  let line ← p.row lines (← p.arguments.needSymbol line_id)
  let rest := 2 - (← line.needQuantity data_refueling_gb)
  return if 0 < rest ∧ rest < (← p.arguments.needQuantity gb_amount) then [.num rest] else []

/-- What an edit of a telecom call may change. -/
def intent : Intent where
  sources := [
    { tools := [send_payment_request], argument := bill_id
      description := "an overdue bill of the customer", values := overdueBills },
    { tools := [refuel_data], argument := gb_amount
      description := "as much data as may still be refuelled", values := restOfData }]

/-- A repair changes which bill is to be paid and how much data is refuelled; the customer and the line stay. -/
@[guard_rule]
theorem only_bill_and_amount_change {snapshot : Snapshot} {original edited : Call}
    (ok : EditOK policy intent snapshot original edited) {name : Symbol} {before after : Value}
    (pair : ((name, before), (name, after)) ∈ original.arguments.zip edited.arguments)
    (other : name ≠ bill_id ∧ name ≠ gb_amount) : after = before := by
  rcases ok.values _ pair with h | ⟨source, member, -, argument, -⟩
  · exact h
  · simp only [intent, List.mem_cons, List.not_mem_nil, or_false] at member
    rcases member with rfl | rfl
    · exact absurd argument.symm other.1
    · exact absurd argument.symm other.2

guard_facts policy intent

end LeanGuard.Telecom
