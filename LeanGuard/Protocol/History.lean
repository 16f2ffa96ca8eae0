import LeanGuard.Protocol.Machine

/-!
# What the theorems say of a history

A history is the list of the accepted steps, newest first.
-/

namespace LeanGuard.Protocol

/-- The reservation that the action dispatches. -/
def Action.dispatched? : Action → Option Symbol
  | .dispatch reservation => some reservation
  | _ => none

/-- The consent that the action uses up. -/
def Action.used? : Action → Option Symbol
  | .reserve _ _ _ consent _ => consent
  | _ => none

/-- The proposal that the action decides on or reserves. -/
def Action.admission? : Action → Option Symbol
  | .decide proposal _ _ => some proposal
  | .reserve _ proposal _ _ _ => some proposal
  | _ => none

/-- The reservation whose call the action knows to have succeeded or failed. -/
def Action.settled? : Action → Option Symbol
  | .outcome reservation .succeeded => some reservation
  | .outcome reservation .failed => some reservation
  | .reconcile reservation _ => some reservation
  | _ => none

namespace History

/-- That proposal was made under that id. -/
def Proposed (history : History) (id : Symbol) (proposal : Proposal) : Prop :=
  ∃ time, ⟨time, .propose id proposal⟩ ∈ history

/-- The newest decision on the proposal admits it at that revision, and no reservation has used that yet. -/
def Admits (history : History) (id revision : Symbol) : Prop :=
  ∃ since time before, history = since ++ ⟨time, .decide id revision true⟩ :: before ∧
    ∀ step ∈ since, step.action.admission? ≠ some id

/-- The reservation was made for that proposal. -/
def Reserved (history : History) (reservation : Symbol) (proposal : Proposal) : Prop :=
  ∃ time id revision consent deadline, ⟨time, .reserve reservation id revision consent deadline⟩ ∈ history ∧
    history.Proposed id proposal

/-- The consent was given to that proposal, by the principal for whom the proposal was made, until that time. -/
def Confirmed (history : History) (consent : Symbol) (proposal : Proposal) (expires : Option Time) : Prop :=
  ∃ time id by', ⟨time, .confirm consent id by' expires⟩ ∈ history ∧ history.Proposed id proposal ∧
    proposal.principal = some by'

end History
end LeanGuard.Protocol
