import LeanGuard.Repair.Tactic

/-! # What `@[guard_rule]` takes and refuses, and what `guard_solve` does with it -/

namespace LeanGuard.Test.Rules

@[irreducible] def special (n : Nat) : Prop := 4 ∣ n
@[irreducible] def regular (n : Nat) : Prop := 2 ∣ n

@[guard_rule]
theorem regular_of_special {n : Nat} (h : special n) : regular n := by
  simp only [special, regular] at *
  omega

open Lean Elab Command in
/-- Fails unless a message of the command has the text. -/
elab "must_mention " text:str c:command : command => do
  let before ← get
  modify fun s => { s with messages := {} }
  elabCommand c
  let found ← (← get).messages.toList.anyM fun m => return ((← m.data.toString).splitOn text.getString).length > 1
  set before
  unless found do throwError "no message mentions it"

must_mention "regular_of_special : ∀ {n : Nat}, special n → regular n" #guard_rules

/-- error: `aDefinition` is not a theorem: only proved facts can be registered with `@[guard_rule]` -/
#guard_msgs in
@[guard_rule]
def aDefinition : Nat := 3

/-- A hypothesis that the statement's conclusion does not determine. -/
theorem loose (n : Nat) (_ : 0 ≤ n) : 1 + 1 = 2 := rfl

open Lean Elab Command in
/-- Fails unless the command fails. -/
elab "must_fail " c:command : command => do
  let before ← get
  elabCommand c
  let failed := (← get).messages.hasErrors
  set before
  unless failed do throwError "it did not fail"

must_fail attribute [guard_rule] loose
must_fail attribute [local guard_rule] regular_of_special

example : 2 + 2 = 4 := by guard_solve
example (a b : Nat) (h : a < b) : a + 1 ≤ b := by guard_solve
example (a b c : Nat) (f : Nat → Nat) (h : a = b) (h' : b = c) : f a = f c := by guard_solve

-- By a registered fact alone.
example (n : Nat) (h : special n) : regular n := by guard_solve
must_fail example (n : Nat) (h : regular n) : special n := by guard_solve

must_fail example (a b : Nat) : a < b := by guard_solve
-- It says what it could not close.
must_mention "guard_solve could not close" example (a b : Nat) : a < b := by guard_solve

end LeanGuard.Test.Rules
