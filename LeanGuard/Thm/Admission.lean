import LeanGuard.Eval.Admission

/-!
# The fail-closed decision

When a call is denied, whatever permits hold, and what a denial names. The first section has the words in which the statements are made.
-/

namespace LeanGuard
namespace Policy

/-- The tool has a contract, and the arguments fit it. -/
def Fits (policy : Policy) (call : Call) : Prop :=
  ∃ contract, policy.contract? call.tool = some contract ∧ contract.violations call.arguments = []

/-- The rule is about the call's tool, and its condition comes to this at the pending moment: true, false or an error. -/
def ComesTo (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) (rule : Rule) (truth : Checked) : Prop :=
  ∃ contract, policy.contract? call.tool = some contract ∧ rule ∈ policy.applicable contract ∧
    rule.condition.eval (.pending (contract.pending call snapshot)) journal.past = truth

/-- What fails for the call: the rules of the policy and those of the host. -/
inductive Fails (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) : Failure → Prop where
  /-- No contract names the tool. -/
  | unknownTool : policy.contract? call.tool = none → Fails policy call snapshot journal Host.unknownTool
  /-- The arguments do not fit the contract. -/
  | arguments (contract : Contract) : policy.contract? call.tool = some contract → contract.violations call.arguments ≠ [] →
      Fails policy call snapshot journal Host.arguments
  /-- No permit is about the tool. -/
  | noPermit : policy.Fits call → (∀ rule truth, rule.kind = .permit → ¬ policy.ComesTo call snapshot journal rule truth) →
      Fails policy call snapshot journal Host.noPermit
  /-- A permit is false, and no other is true. -/
  | permit (rule : Rule) : policy.Fits call → rule.kind = .permit → policy.ComesTo call snapshot journal rule (.ok false) →
      (∀ other, other.kind = .permit → ¬ policy.ComesTo call snapshot journal other (.ok true)) →
      Fails policy call snapshot journal rule.failure
  /-- A requirement is false. -/
  | require (rule : Rule) : policy.Fits call → rule.kind = .require → policy.ComesTo call snapshot journal rule (.ok false) →
      Fails policy call snapshot journal rule.failure
  /-- A forbid is true. -/
  | forbid (rule : Rule) : policy.Fits call → rule.kind = .forbid → policy.ComesTo call snapshot journal rule (.ok true) →
      Fails policy call snapshot journal rule.failure

/-- What could not be evaluated for the call. -/
inductive Errs (policy : Policy) (call : Call) (snapshot : Snapshot) (journal : Journal) : RuleError → Prop where
  /-- Something about the arguments does not fit the contract. -/
  | arguments (contract : Contract) (violation : EvalError) : policy.contract? call.tool = some contract →
      violation ∈ contract.violations call.arguments → Errs policy call snapshot journal ⟨Host.arguments.id, violation⟩
  /-- A rule's condition comes to an error. -/
  | rule (rule : Rule) (error : EvalError) : policy.Fits call → policy.ComesTo call snapshot journal rule (.error error) →
      Errs policy call snapshot journal ⟨rule.id, error⟩

end Policy

/-! ### What the applicable rules come to -/

private theorem mem_results {policy : Policy} {contract : Contract} {pending : Pending} {journal : Journal} {r : Result} :
    r ∈ policy.results contract pending journal ↔
      r.rule ∈ policy.applicable contract ∧ r.rule.condition.eval (.pending pending) journal.past = r.truth := by
  cases r
  simp only [Policy.results, List.mem_map]
  grind

private theorem permits_iff {r : Result} : r.permits ↔ r.rule.kind = .permit ∧ r.truth = .ok true := by
  rcases r with ⟨rule, b | b⟩ <;> simp [Result.permits, Checked.isTrue]

private theorem violated_iff {r : Result} : r.violated ↔
    r.rule.kind = .require ∧ r.truth = .ok false ∨ r.rule.kind = .forbid ∧ r.truth = .ok true := by
  rcases r with ⟨rule, b | b⟩ <;> cases h : rule.kind <;> simp [Result.violated, Checked.isTrue, Checked.isFalse, h]

private theorem error?_eq_some_iff {r : Result} {error : RuleError} :
    r.error? = some error ↔ ∃ e, r.truth = .error e ∧ error = ⟨r.rule.id, e⟩ := by
  rcases r with ⟨rule, b | b⟩ <;> simp [Result.error?, eq_comm]

private theorem mem_failedPermits {results : List Result} {failure : Failure} : failure ∈ failedPermits results ↔
    (∀ r ∈ results, ¬ r.permits) ∧
      ((failure = Host.noPermit ∧ ∀ r ∈ results, r.rule.kind ≠ .permit) ∨
        ∃ r ∈ results, r.rule.kind = .permit ∧ r.truth = .ok false ∧ r.rule.failure = failure) := by
  have isFalse_iff (c : Checked) : c.isFalse ↔ c = .ok false := by cases c <;> simp [Checked.isFalse]
  simp only [failedPermits]
  split
  · rename_i some
    simp only [List.any_eq_true] at some
    grind
  · split
    · rename_i none
      simp only [List.filter_eq_nil_iff] at none
      simp_all
    · rename_i some
      simp only [List.mem_map, List.mem_filter, beq_iff_eq, isFalse_iff]
      have : ∃ r ∈ results, r.rule.kind = .permit := by
        have := List.exists_mem_of_ne_nil _ some
        simpa using this
      simp_all
      grind

private theorem conclude_eq_admit_iff {results : List Result} : conclude results = .admit ↔
    (∃ r ∈ results, r.permits) ∧ (∀ r ∈ results, ¬ r.violated) ∧ ∀ r ∈ results, r.error? = none := by
  simp only [conclude, failedPermits]
  by_cases h : results.any Result.permits <;> simp_all

/-- The applicable rules conclude to admission exactly when a permit holds and every rule came to what its kind asks. -/
theorem conclude_results_iff {policy : Policy} {contract : Contract} {pending : Pending} {journal : Journal} :
    conclude (policy.results contract pending journal) = .admit ↔
      (∃ rule ∈ policy.applicable contract, rule.kind = .permit ∧
        rule.condition.eval (.pending pending) journal.past = .ok true) ∧
      (∀ rule ∈ policy.applicable contract, rule.kind = .require →
        rule.condition.eval (.pending pending) journal.past = .ok true) ∧
      (∀ rule ∈ policy.applicable contract, rule.kind = .forbid →
        rule.condition.eval (.pending pending) journal.past = .ok false) ∧
      ∀ rule ∈ policy.applicable contract, ∀ e, rule.condition.eval (.pending pending) journal.past ≠ .error e := by
  rw [conclude_eq_admit_iff]
  have mem (rule : Rule) (h : rule ∈ policy.applicable contract) :
      ⟨rule, rule.condition.eval (.pending pending) journal.past⟩ ∈ policy.results contract pending journal :=
    mem_results.mpr ⟨h, rfl⟩
  constructor
  · rintro ⟨⟨r, hr, hp⟩, hv, he⟩
    have no (rule : Rule) (h : rule ∈ policy.applicable contract) (e : EvalError) :
        rule.condition.eval (.pending pending) journal.past ≠ .error e := fun h' => by
      have := he _ (mem rule h)
      rw [h'] at this
      cases this
    refine ⟨⟨r.rule, (mem_results.mp hr).1, (permits_iff.mp hp).1, ?_⟩, fun rule h k => ?_, fun rule h k => ?_, no⟩
    · rw [(mem_results.mp hr).2, (permits_iff.mp hp).2]
    all_goals
      have := hv _ (mem rule h)
      rw [violated_iff] at this
      have := no rule h
      cases h' : rule.condition.eval (.pending pending) journal.past with
      | error e => exact absurd h' (this e)
      | ok b => cases b <;> simp_all
  · rintro ⟨⟨rule, h, k, e⟩, hr, hf, he⟩
    refine ⟨⟨_, mem rule h, permits_iff.mpr ⟨k, e⟩⟩, fun r h' => ?_, fun r h' => ?_⟩
    · rw [violated_iff]
      have := mem_results.mp h'
      grind
    · have := mem_results.mp h'
      cases h'' : r.error? with
      | none => rfl
      | some error =>
        obtain ⟨e, h₁, -⟩ := error?_eq_some_iff.mp h''
        exact absurd (this.2.trans h₁) (he _ this.1 e)

/-- A call is admitted exactly when it fits its contract and the applicable rules conclude so. -/
theorem decide_eq_admit_iff {policy : Policy} {call : Call} {snapshot : Snapshot} {journal : Journal} :
    policy.decide call snapshot journal = .admit ↔
      ∃ contract, policy.contract? call.tool = some contract ∧ contract.violations call.arguments = [] ∧
        conclude (policy.results contract (contract.pending call snapshot) journal) = .admit := by
  simp only [Policy.decide, Policy.decideWith]
  cases policy.contract? call.tool with
  | none => simp
  | some contract => cases h : contract.violations call.arguments <;> simp [h]

variable {policy : Policy} {call : Call} {snapshot : Snapshot} {journal : Journal} {rule : Rule}

/-! ### Denials -/

/-- A forbid that holds denies the call, whatever permits hold. -/
theorem forbid_overrides (kind : rule.kind = .forbid) (holds : policy.ComesTo call snapshot journal rule (.ok true)) :
    policy.decide call snapshot journal ≠ .admit := by
  intro admitted
  obtain ⟨contract, found, -, h⟩ := decide_eq_admit_iff.mp admitted
  obtain ⟨-, -, forbids, -⟩ := conclude_results_iff.mp h
  grind [Policy.ComesTo]

/-- A requirement that comes to anything but true denies the call, whatever permits hold. -/
theorem unmet_requirement_denies {truth : Checked} (kind : rule.kind = .require)
    (comes : policy.ComesTo call snapshot journal rule truth) (unmet : truth ≠ .ok true) :
    policy.decide call snapshot journal ≠ .admit := by
  intro admitted
  obtain ⟨contract, found, -, h⟩ := decide_eq_admit_iff.mp admitted
  obtain ⟨-, requires, -, -⟩ := conclude_results_iff.mp h
  grind [Policy.ComesTo]

/-- A rule that can't be evaluated denies the call, whatever its kind and whatever the others say. -/
theorem error_denies {error : EvalError} (errs : policy.ComesTo call snapshot journal rule (.error error)) :
    policy.decide call snapshot journal ≠ .admit := by
  intro admitted
  obtain ⟨contract, found, -, h⟩ := decide_eq_admit_iff.mp admitted
  obtain ⟨-, -, -, errors⟩ := conclude_results_iff.mp h
  grind [Policy.ComesTo]

/-- Where no permit holds, the call is denied. -/
theorem default_deny
    (none : ∀ rule : Rule, rule.kind = .permit → ¬ policy.ComesTo call snapshot journal rule (.ok true)) :
    policy.decide call snapshot journal ≠ .admit := by
  intro admitted
  obtain ⟨contract, found, -, h⟩ := decide_eq_admit_iff.mp admitted
  obtain ⟨⟨rule, mem, kind, holds⟩, -⟩ := conclude_results_iff.mp h
  exact none rule kind ⟨contract, found, mem, holds⟩

private theorem comesTo_iff {contract : Contract} (found : policy.contract? call.tool = some contract) {truth : Checked} :
    policy.ComesTo call snapshot journal rule truth ↔ rule ∈ policy.applicable contract ∧
      rule.condition.eval (.pending (contract.pending call snapshot)) journal.past = truth := by
  simp [Policy.ComesTo, found]

private theorem mem_results_iff {contract : Contract} (found : policy.contract? call.tool = some contract) {r : Result} :
    r ∈ policy.results contract (contract.pending call snapshot) journal ↔
      policy.ComesTo call snapshot journal r.rule r.truth := by
  rw [mem_results, comesTo_iff found]

private theorem conclude_eq_deny {results : List Result} {failed : List Failure} {errors : List RuleError}
    (h : conclude results = .deny failed errors) :
    failed = failedPermits results ++ (results.filter Result.violated).map (·.rule.failure) ∧
      errors = results.filterMap Result.error? := by
  simp only [conclude] at h
  split at h <;> simp_all

/-- A denial names exactly the rules that failed, and exactly the errors. -/
theorem failed_rules_complete {failed : List Failure} {errors : List RuleError}
    (denied : policy.decide call snapshot journal = .deny failed errors) :
    (∀ failure, failure ∈ failed ↔ policy.Fails call snapshot journal failure) ∧
      ∀ error, error ∈ errors ↔ policy.Errs call snapshot journal error := by
  cases found : policy.contract? call.tool with
  | none =>
    have unfit : ¬ policy.Fits call := by simp [Policy.Fits, found]
    simp only [Policy.decide, Policy.decideWith, found] at denied
    cases denied
    refine ⟨fun failure => ⟨fun h => ?_, ?_⟩, fun error => ⟨fun h => by simp at h, ?_⟩⟩
    · rw [List.mem_singleton.mp h]
      exact .unknownTool found
    all_goals rintro (_ | _) <;> simp_all
  | some contract =>
    cases fits : contract.violations call.arguments with
    | cons violation violations =>
      have unfit : ¬ policy.Fits call := by simp [Policy.Fits, found, fits]
      simp only [Policy.decide, Policy.decideWith, found, fits] at denied
      cases denied
      refine ⟨fun failure => ⟨fun h => ?_, ?_⟩, fun error => ⟨fun h => ?_, ?_⟩⟩
      · rw [List.mem_singleton.mp h]
        exact .arguments contract found (by simp [fits])
      · rintro (_ | _) <;> simp_all
      · obtain ⟨v, hv, rfl⟩ := List.mem_map.mp h
        exact .arguments contract v found (fits ▸ hv)
      · rintro (_ | _) <;> simp_all
    | nil =>
      have fit : policy.Fits call := ⟨contract, found, fits⟩
      simp only [Policy.decide, Policy.decideWith, found, fits] at denied
      obtain ⟨rfl, rfl⟩ := conclude_eq_deny denied
      have mem r := mem_results_iff (snapshot := snapshot) (journal := journal) found (r := r)
      constructor
      · intro failure
        simp only [List.mem_append, mem_failedPermits, List.mem_map, List.mem_filter, permits_iff, violated_iff, mem]
        constructor
        · rintro (⟨none, ⟨rfl, h⟩ | ⟨r, h, kind, truth, rfl⟩⟩ | ⟨r, ⟨h, ⟨kind, truth⟩ | ⟨kind, truth⟩⟩, rfl⟩)
          · exact .noPermit fit fun rule truth kind h' => h ⟨rule, truth⟩ h' kind
          · exact .permit r.rule fit kind (truth ▸ h) fun other kind' h' => none ⟨other, .ok true⟩ h' ⟨kind', rfl⟩
          · exact .require r.rule fit kind (truth ▸ h)
          · exact .forbid r.rule fit kind (truth ▸ h)
        · rintro (h | ⟨c, h, h'⟩ | ⟨-, h⟩ | ⟨rule, -, kind, h, none⟩ | ⟨rule, -, kind, h⟩ | ⟨rule, -, kind, h⟩)
          · simp_all
          · simp_all
          · exact .inl ⟨fun r h' ⟨kind, _⟩ => h _ _ kind h', .inl ⟨rfl, fun r h' kind => h _ _ kind h'⟩⟩
          · exact .inl ⟨fun r h' ⟨kind, truth⟩ => none _ kind (truth ▸ h'), .inr ⟨⟨rule, _⟩, h, kind, rfl, rfl⟩⟩
          · exact .inr ⟨⟨rule, _⟩, ⟨h, .inl ⟨kind, rfl⟩⟩, rfl⟩
          · exact .inr ⟨⟨rule, _⟩, ⟨h, .inr ⟨kind, rfl⟩⟩, rfl⟩
      · intro error
        simp only [List.mem_filterMap, error?_eq_some_iff, mem]
        constructor
        · rintro ⟨r, h, e, truth, rfl⟩
          exact .rule r.rule e fit (truth ▸ h)
        · rintro (⟨c, v, h, h'⟩ | ⟨rule, e, -, h⟩)
          · simp_all
          · exact ⟨⟨rule, _⟩, h, e, rfl, rfl⟩

/-! ### Stricter rules -/

/-- Without its stricter rules a policy has all its others, and no more. -/
theorem withoutStricter_rules : rule ∈ policy.withoutStricter.rules ↔ rule ∈ policy.rules ∧ rule.optional = false := by
  simp [Policy.withoutStricter]

/-- What a policy admits, it admits without its stricter rules too: leaving them out denies nothing. -/
theorem withoutStricter_admits (admitted : policy.decide call snapshot journal = .admit) :
    policy.withoutStricter.decide call snapshot journal = .admit := by
  obtain ⟨contract, found, fits, h⟩ := decide_eq_admit_iff.mp admitted
  obtain ⟨⟨permit, mem, kind, holds⟩, requires, forbids, errors⟩ := conclude_results_iff.mp h
  have fewer (rule : Rule) (h : rule ∈ policy.withoutStricter.applicable contract) : rule ∈ policy.applicable contract := by
    simp_all [Policy.applicable, Policy.withoutStricter]
  refine decide_eq_admit_iff.mpr ⟨contract, found, fits, conclude_results_iff.mpr ⟨⟨permit, ?_, kind, holds⟩, ?_, ?_, ?_⟩⟩
  · simp_all [Policy.applicable, Policy.withoutStricter, Rule.optional]
  · exact fun rule h => requires rule (fewer rule h)
  · exact fun rule h => forbids rule (fewer rule h)
  · exact fun rule h => errors rule (fewer rule h)

/-- A denial never comes without a reason: it names a failed rule or an error. -/
theorem denial_has_reason {failed : List Failure} {errors : List RuleError}
    (denied : policy.decide call snapshot journal = .deny failed errors) : failed ≠ [] ∨ errors ≠ [] := by
  simp only [Policy.decide, Policy.decideWith] at denied
  split at denied
  · cases denied
    simp
  · split at denied
    · obtain ⟨rfl, rfl⟩ := conclude_eq_deny denied
      simp only [conclude] at denied
      split at denied
      · cases denied
      · rename_i h
        generalize policy.results _ _ _ = results at *
        by_cases p : results.any Result.permits
        · simp_all
          grind
        · have this {failure : Failure} := mem_failedPermits (results := results) (failure := failure)
          by_cases k : ∃ r ∈ results, r.rule.kind = .permit
          · obtain ⟨r, hr, kind⟩ := k
            cases truth : r.truth with
            | error e =>
              refine .inr (List.ne_nil_of_mem (a := ⟨r.rule.id, e⟩) ?_)
              rw [List.mem_filterMap]
              exact ⟨r, hr, error?_eq_some_iff.mpr ⟨e, truth, rfl⟩⟩
            | ok b =>
              refine .inl (List.ne_nil_of_mem (a := r.rule.failure) (List.mem_append_left _ (this.mpr ?_)))
              simp only [permits_iff, List.any_eq_true] at p ⊢
              cases b <;> grind
          · refine .inl (List.ne_nil_of_mem (a := Host.noPermit) (List.mem_append_left _ (this.mpr ?_)))
            simp only [List.any_eq_true] at p
            grind
    · cases denied
      simp

end LeanGuard
