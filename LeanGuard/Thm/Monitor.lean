import LeanGuard.Eval.Monitor

/-!
# The incremental monitor answers as the evaluator does

A memory agrees with a past when it holds what the evaluator would find there. The start agrees with the empty past, learning a moment keeps
the agreement, and recalling from an agreeing memory is evaluating.
-/

namespace LeanGuard
namespace Formula

/-! ### Windows and latest times -/

/-- A window covers the later of two times exactly when it covers one of them: so the latest time is enough to remember. -/
theorem remembered_later (w : Window) (anchor : Time) (a b : Option Time) :
    remembered w anchor (later a b) = (remembered w anchor a || remembered w anchor b) := by
  cases a <;> cases b <;> cases w <;> simp [remembered, later, Window.covers] <;> grind

/-- The latest moment of a past at which `p` held. -/
def latestOnce (p : Moment → Past → Checked) : Past → Latest
  | [] => .ok none
  | m :: past => do
    let here ← p m past
    let latest ← latestOnce p past
    return later (if here then some m.time else none) latest

/-- The latest moment of a past at which `q` held, if `p` held ever since. -/
def latestSince (p q : Moment → Past → Checked) : Past → Latest
  | [] => .ok none
  | m :: past => do
    let held ← p m past
    let witness ← q m past
    let latest ← latestSince p q past
    return later (if witness then some m.time else none) (if held then latest else none)

theorem evalOnce_eq_latestOnce (w : Window) (anchor : Time) (p : Moment → Past → Checked) (m : Moment) (past : Past) :
    evalOnce (fun x => w.covers anchor x.time) p m past = (do
      let here ← p m past
      let latest ← latestOnce p past
      return (w.covers anchor m.time && here) || remembered w anchor latest) := by
  induction past generalizing m with
  | nil => cases h : p m [] <;> simp [evalOnce, latestOnce, remembered, h, bind, Except.bind, pure, Except.pure]
  | cons e past ih =>
    simp only [evalOnce, ih, latestOnce]
    cases p m (e :: past) <;> cases p e past <;> cases latestOnce p past <;>
      simp [bind, Except.bind, pure, Except.pure, remembered_later]
    grind [remembered]

theorem evalSince_eq_latestSince (w : Window) (anchor : Time) (p q : Moment → Past → Checked) (m : Moment) (past : Past) :
    evalSince (fun x => w.covers anchor x.time) p q m past = (do
      let held ← p m past
      let witness ← q m past
      let latest ← latestSince p q past
      return (w.covers anchor m.time && witness) || (held && remembered w anchor latest)) := by
  induction past generalizing m with
  | nil =>
    cases h : p m [] <;> cases h' : q m [] <;>
      simp [evalSince, latestSince, remembered, h, h', bind, Except.bind, pure, Except.pure]
  | cons e past ih =>
    simp only [evalSince, ih, latestSince]
    cases p m (e :: past) <;> cases q m (e :: past) <;> cases p e past <;> cases q e past <;> cases latestSince p q past <;>
      simp [bind, Except.bind, pure, Except.pure, remembered_later]
    grind [remembered]

/-! ### Agreement -/

/-- The memory holds what the evaluator would find in the past. -/
def Agrees : (f : Formula) → f.Memory → Past → Prop
  | .atom _ _, _, _ | .top, _, _ | .bot, _, _ => True
  | .not p, s, past => p.Agrees s past
  | .and p q, s, past => p.Agrees s.1 past ∧ q.Agrees s.2 past
  | .or p q, s, past => p.Agrees s.1 past ∧ q.Agrees s.2 past
  | .previous _ p, s, past => p.Agrees s.1 past ∧
    s.2 = match past with
      | [] => none
      | m :: older => some (m.time, p.eval m older)
  | .once _ p, s, past => p.Agrees s.1 past ∧ s.2 = latestOnce p.eval past
  | .since _ p q, s, past => p.Agrees s.1 past ∧ q.Agrees s.2.1 past ∧ s.2.2 = latestSince p.eval q.eval past
  | .within scope p, s, past => ∀ key, p.Agrees (s.getD key p.start) (scope.project key past)

/-- The memory of nothing agrees with the empty past. -/
theorem agrees_start (f : Formula) : f.Agrees f.start [] := by
  induction f <;> simp_all [Agrees, start, latestOnce, latestSince, Scope.project]

/-- From a memory that agrees with the past, recalling is evaluating. -/
theorem recall_eq_eval (f : Formula) (s : f.Memory) (m : Moment) (past : Past) (h : f.Agrees s past) :
    f.recall s m = f.eval m past := by
  induction f generalizing m past with
  | atom | top | bot => rfl
  | not p ih => simp only [recall, eval, ih s m past h]
  | and p q ihp ihq | or p q ihp ihq => simp only [recall, eval, ihp s.1 m past h.1, ihq s.2 m past h.2]
  | previous w p ih => cases past <;> simp [recall, eval, h.2]
  | once w p ih => simp only [recall, eval, evalOnce_eq_latestOnce, ih s.1 m past h.1, h.2]
  | since w p q ihp ihq =>
    simp only [recall, eval, evalSince_eq_latestSince, ihp s.1 m past h.1, ihq s.2.1 m past h.2.1, h.2.2]
  | within scope p ih =>
    simp only [recall, eval]
    cases scope.key m with
    | none => rfl
    | some key => exact ih _ m _ (h key)

/-- Learning a moment keeps the agreement. -/
theorem agrees_learn (f : Formula) (s : f.Memory) (m : Moment) (past : Past) (h : f.Agrees s past) :
    f.Agrees (f.learn s m) (m :: past) := by
  induction f generalizing past with
  | atom | top | bot => trivial
  | not p ih => exact ih s past h
  | and p q ihp ihq | or p q ihp ihq => exact ⟨ihp s.1 past h.1, ihq s.2 past h.2⟩
  | previous w p ih => exact ⟨ih s.1 past h.1, by simp [learn, recall_eq_eval p s.1 m past h.1]⟩
  | once w p ih =>
    refine ⟨ih s.1 past h.1, ?_⟩
    simp only [learn, latestOnce, recall_eq_eval p s.1 m past h.1, h.2]
  | since w p q ihp ihq =>
    refine ⟨ihp s.1 past h.1, ihq s.2.1 past h.2.1, ?_⟩
    simp only [learn, latestSince, recall_eq_eval p s.1 m past h.1, recall_eq_eval q s.2.1 m past h.2.1, h.2.2]
  | within scope p ih =>
    intro key
    simp only [learn]
    cases hk : scope.key m with
    | none => simpa [Scope.project, hk] using h key
    | some k =>
      by_cases e : k = key
      · subst e
        simpa [Scope.project, hk] using ih _ _ (h k)
      · simpa [Scope.project, hk, Std.HashMap.getD_insert, e] using h key

/-- The memory of a past agrees with it. -/
theorem agrees_memory (f : Formula) (past : Past) : f.Agrees (f.memory past) past := by
  induction past with
  | nil => exact f.agrees_start
  | cons m past ih => exact f.agrees_learn _ m past ih

/-- Recalling from the memory of a past gives what evaluating over that past gives, errors included. -/
theorem recall_memory_eq_eval (f : Formula) (m : Moment) (past : Past) : f.recall (f.memory past) m = f.eval m past :=
  f.recall_eq_eval _ m past (f.agrees_memory past)

end Formula

/-! ### Policies -/

namespace Monitor

/-- Observing an event gives the monitor of the journal with that event in front. -/
theorem observe_ofJournal (policy : Policy) (journal : Journal) (event : Event) :
    (ofJournal policy journal).observe event = ofJournal policy (event :: journal) := rfl

/-- A monitor of a journal watches the policy's rules, each with the memory of the journal. -/
theorem ofJournal_eq (policy : Policy) (journal : Journal) :
    ofJournal policy journal = ⟨policy, policy.rules.map fun rule => ⟨rule, rule.condition.memory journal.past⟩⟩ := by
  induction journal with
  | nil => rfl
  | cons event journal ih => simp [← observe_ofJournal, ih, observe, Journal.past, Formula.memory, Function.comp_def]

end Monitor

/-- The monitor of a journal decides every call as the evaluator does over that journal. -/
theorem monitor_eq_eval (policy : Policy) (journal : Journal) (call : Call) (snapshot : Snapshot) :
    (Monitor.ofJournal policy journal).decide call snapshot = policy.decide call snapshot journal := by
  simp [Monitor.ofJournal_eq, Monitor.decide, Policy.decide, Policy.results, Policy.applicable, List.filter_map,
    Function.comp_def, Formula.recall_memory_eq_eval]

end LeanGuard
