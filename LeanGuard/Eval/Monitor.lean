import Std.Data.HashMap
import LeanGuard.Eval.Admission

/-!
# The incremental monitor

What the journal means for a formula is kept as a small state, so that a decision reads the state and never the journal. An event
changes it by a number of steps that depends on the formula alone: a scope keeps one state a key and an event touches only its own.
`Thm/Monitor.lean` proves that the monitor answers as the evaluator does.
-/

namespace LeanGuard

/-- The latest of the times at which something held, or the error that was met on the way. -/
abbrev Latest := Except EvalError (Option Time)

/-- The later of two times. -/
def later : Option Time → Option Time → Option Time
  | none, b => b
  | a, none => a
  | some a, some b => some (max a b)

/-- What a formula remembers of the past. -/
def Formula.Memory : Formula → Type
  | .atom _ _ | .top | .bot => Unit
  | .not p => p.Memory
  | .and p q | .or p q => p.Memory × q.Memory
  /- the newest event's time, and what `p` came to at it -/
  | .previous _ p => p.Memory × Option (Time × Checked)
  | .once _ p => p.Memory × Latest
  | .since _ p q => p.Memory × q.Memory × Latest
  | .within _ p => Std.HashMap Key p.Memory

namespace Formula

/-- The memory of an empty past. -/
def start : (f : Formula) → f.Memory
  | .atom _ _ | .top | .bot => ()
  | .not p => p.start
  | .and p q | .or p q => (p.start, q.start)
  | .previous _ p => (p.start, none)
  | .once _ p => (p.start, .ok none)
  | .since _ p q => (p.start, q.start, .ok none)
  | .within _ _ => (∅ : Std.HashMap Key _)

/-- Whether a remembered time lies in the window. -/
def remembered (w : Window) (anchor : Time) : Option Time → Bool
  | none => false
  | some t => w.covers anchor t

/-- The formula's truth at a moment, from the memory of the moments before it. -/
def recall : (f : Formula) → f.Memory → Moment → Checked
  | .atom _ holds, _, m => holds m
  | .top, _, _ => .ok true
  | .bot, _, _ => .ok false
  | .not p, s, m => do
    let a ← p.recall s m
    return !a
  | .and p q, s, m => do
    let a ← p.recall s.1 m
    let b ← q.recall s.2 m
    return a && b
  | .or p q, s, m => do
    let a ← p.recall s.1 m
    let b ← q.recall s.2 m
    return a || b
  | .previous w _, s, m =>
    match s.2 with
    | none => .ok false
    | some (t, truth) => do
      let a ← truth
      return w.covers m.time t && a
  | .once w p, s, m => do
    let here ← p.recall s.1 m
    let latest ← s.2
    return (w.covers m.time m.time && here) || remembered w m.time latest
  | .since w p q, s, m => do
    let held ← p.recall s.1 m
    let witness ← q.recall s.2.1 m
    let latest ← s.2.2
    return (w.covers m.time m.time && witness) || (held && remembered w m.time latest)
  | .within scope p, s, m =>
    match scope.key m with
    | none => .error scope.missing
    | some key => p.recall (s.getD key p.start) m

/-- The memory once the moment has become the newest of the past. -/
def learn : (f : Formula) → f.Memory → Moment → f.Memory
  | .atom _ _, _, _ | .top, _, _ | .bot, _, _ => ()
  | .not p, s, m => p.learn s m
  | .and p q, s, m => (p.learn s.1 m, q.learn s.2 m)
  | .or p q, s, m => (p.learn s.1 m, q.learn s.2 m)
  | .previous _ p, s, m => (p.learn s.1 m, some (m.time, p.recall s.1 m))
  | .once _ p, s, m =>
    (p.learn s.1 m, do
      let here ← p.recall s.1 m
      let latest ← s.2
      return later (if here then some m.time else none) latest)
  | .since _ p q, s, m =>
    (p.learn s.1 m, q.learn s.2.1 m, do
      let held ← p.recall s.1 m
      let witness ← q.recall s.2.1 m
      let latest ← s.2.2
      return later (if witness then some m.time else none) (if held then latest else none))
  | .within scope p, s, m =>
    match scope.key m with
    | none => s
    | some key => s.insert key (p.learn (s.getD key p.start) m)

/-- The memory of a past. -/
def memory (f : Formula) : Past → f.Memory
  | [] => f.start
  | m :: past => f.learn (f.memory past) m

end Formula

/-- A rule with what its condition remembers of the journal. -/
structure Watch where
  rule : Rule
  memory : rule.condition.Memory

/-- The rules of a policy, watching one journal. -/
structure Monitor where
  policy : Policy
  watches : List Watch

namespace Monitor

/-- A monitor that has seen nothing. -/
def start (policy : Policy) : Monitor :=
  { policy, watches := policy.rules.map fun rule => ⟨rule, rule.condition.start⟩ }

/-- The monitor after one more event. -/
def observe (monitor : Monitor) (event : Event) : Monitor :=
  { monitor with watches := monitor.watches.map fun w => ⟨w.rule, w.rule.condition.learn w.memory (.event event)⟩ }

/-- A monitor that has seen a journal. -/
def ofJournal (policy : Policy) (journal : Journal) : Monitor :=
  journal.foldr (fun event monitor => monitor.observe event) (start policy)

/-- The decision, from what the rules remember. -/
def decide (monitor : Monitor) (call : Call) (snapshot : Snapshot) : Decision :=
  monitor.policy.decideWith call snapshot fun contract pending =>
    (monitor.watches.filter (·.rule.tools.include contract)).map fun w =>
      ⟨w.rule, w.rule.condition.recall w.memory (.pending pending)⟩

end Monitor
end LeanGuard
