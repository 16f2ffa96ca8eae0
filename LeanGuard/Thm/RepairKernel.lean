import LeanGuard.Repair.Kernel
import LeanGuard.Repair.Search

/-! # The kernel's evaluation is the evaluator of record -/

namespace LeanGuard.Fast

variable {scope : Scope} {p : Pending} {journal : Journal} {front : Option Event}

/-! ### Scopes -/

theorem key_cons {d : Dimension} {m : Moment} : Scope.key (d :: scope) m =
    (d.read m).bind fun v => (Scope.key scope m).map (v :: ·) := by
  simp only [Scope.key, List.mapM_cons]
  cases d.read m <;> simp
  cases List.mapM (fun x => Dimension.read x m) scope <;> rfl

theorem hasKey_eq : hasKey scope p = (scope.key (.pending p)).isSome := by
  induction scope with
  | nil => rfl
  | cons d scope ih =>
    rw [key_cons]
    show cond (d.read (.pending p)).isSome (hasKey scope p) false = _
    rw [ih]
    cases d.read (.pending p) <;> simp

theorem inScope_eq {key : Key} {e : Event} (found : scope.key (.pending p) = some key) :
    inScope scope p e = (scope.key (.event e) == some key) := by
  induction scope generalizing key with
  | nil =>
    cases found
    rfl
  | cons d scope ih =>
    rw [key_cons] at found ⊢
    obtain ⟨v, hv, found⟩ := Option.bind_eq_some_iff.mp found
    obtain ⟨rest, hr, rfl⟩ := Option.map_eq_some_iff.mp found
    show cond (sameIn d p e) (inScope scope p e) false = _
    rw [ih hr, Bool.eq_iff_iff]
    have same : sameIn d p e = true ↔ d.read (.event e) = some v := by
      rw [sameIn_iff (by simp [hv]), hv]
    cases h : sameIn d p e
    · have : d.read (.event e) ≠ some v := fun h' => by simp [same.mpr h'] at h
      cases h' : d.read (.event e) with
      | none => simp
      | some v' =>
        cases Scope.key scope (.event e) <;> simp
        rintro rfl
        exact absurd h' this
    · rw [same.mp h]
      cases Scope.key scope (.event e) <;> simp

/-! ### Formulas about one moment -/

theorem evalLocal_eq {f : Formula} (h : isLocal f = true) (m : Moment) (past : Past) : evalLocal f m = f.eval m past := by
  induction f with
  | atom | top | bot => rfl
  | not f ih =>
    have ih := ih h
    show andThen (evalLocal f m) _ = _
    rw [ih]
    simp only [Formula.eval]
    rcases f.eval m past with _ | _ | _ <;> rfl
  | and f g ihf ihg =>
    have h : cond (isLocal f) (isLocal g) false = true := h
    have hf : isLocal f = true := by cases h' : isLocal f <;> simp [h'] at h ⊢
    have hg : isLocal g = true := by simpa [hf] using h
    show andThen (evalLocal f m) (fun x => andThen (evalLocal g m) _) = _
    rw [ihf hf, ihg hg]
    simp only [Formula.eval]
    rcases f.eval m past with _ | _ | _ <;> rcases g.eval m past with _ | _ | _ <;> rfl
  | or f g ihf ihg =>
    have h : cond (isLocal f) (isLocal g) false = true := h
    have hf : isLocal f = true := by cases h' : isLocal f <;> simp [h'] at h ⊢
    have hg : isLocal g = true := by simpa [hf] using h
    show andThen (evalLocal f m) (fun x => andThen (evalLocal g m) _) = _
    rw [ihf hf, ihg hg]
    simp only [Formula.eval]
    rcases f.eval m past with _ | _ | _ <;> rcases g.eval m past with _ | _ | _ <;> rfl
  | previous | once | since | within => cases h

/-! ### `once` and `since` -/

/-- What `once` comes to at the moments behind. -/
def onceBehind (covers : Moment → Bool) (p : Moment → Past → Checked) : Past → Checked
  | [] => .ok false
  | m :: past => evalOnce covers p m past

/-- What `since` comes to at the moments behind. -/
def sinceBehind (covers : Moment → Bool) (p q : Moment → Past → Checked) : Past → Checked
  | [] => .ok false
  | m :: past => evalSince covers p q m past

theorem evalOnce_eq {covers : Moment → Bool} {f : Moment → Past → Checked} {m : Moment} {past : Past} :
    evalOnce covers f m past = andThen (f m past) fun here =>
      andThen (onceBehind covers f past) fun earlier => .ok (cond (cond (covers m) here false) true earlier) := by
  cases past with
  | nil =>
    simp only [evalOnce, onceBehind]
    rcases f m [] with _ | _ | _ <;> cases covers m <;> rfl
  | cons e past =>
    simp only [evalOnce, onceBehind]
    rcases f m (e :: past) with _ | _ | _ <;> rcases evalOnce covers f e past with _ | _ | _ <;> cases covers m <;> rfl

theorem evalSince_eq {covers : Moment → Bool} {f g : Moment → Past → Checked} {m : Moment} {past : Past} :
    evalSince covers f g m past = andThen (f m past) fun held => andThen (g m past) fun witness =>
      andThen (sinceBehind covers f g past) fun earlier =>
        .ok (cond (cond (covers m) witness false) true (cond held earlier false)) := by
  cases past with
  | nil =>
    simp only [evalSince, sinceBehind]
    rcases f m [] with _ | _ | _ <;> rcases g m [] with _ | _ | _ <;> cases covers m <;> rfl
  | cons e past =>
    simp only [evalSince, sinceBehind]
    rcases f m (e :: past) with _ | _ | _ <;> rcases g m (e :: past) with _ | _ | _ <;>
      rcases evalSince covers f g e past with _ | _ | _ <;> cases covers m <;> rfl

variable {w : Window} {anchor : Time} {f g : Formula}

theorem onceStep_outside {h : Event → Checked} {e : Event} {older : Checked} : onceStep w anchor h false e older = older := by
  simp only [onceStep]
  rcases h e with _ | _ | _ <;> rfl

theorem onceStep_inside (local_f : isLocal f = true) {e : Event} {past : Past} :
    onceStep w anchor (fun e => evalLocal f (.event e)) true e (onceBehind (fun x => w.covers anchor x.time) f.eval past) =
      onceBehind (fun x => w.covers anchor x.time) f.eval (.event e :: past) := by
  rw [onceBehind, evalOnce_eq, onceStep, evalLocal_eq local_f (.event e) past]
  show _ = andThen _ fun here => andThen _ fun earlier => .ok (cond (cond (w.covers anchor e.time) here false) true earlier)
  rcases f.eval (.event e) past with _ | _ | _ <;>
    rcases onceBehind (fun x => w.covers anchor x.time) f.eval past with _ | _ | _ <;> cases w.covers anchor e.time <;> rfl

theorem sinceStep_outside {h k : Event → Checked} {e : Event} {older : Checked} : sinceStep w anchor h k false e older = older := by
  simp only [sinceStep]
  rcases h e with _ | _ | _ <;> rcases k e with _ | _ | _ <;> rfl

theorem sinceStep_inside (local_f : isLocal f = true) (local_g : isLocal g = true) {e : Event} {past : Past} :
    sinceStep w anchor (fun e => evalLocal f (.event e)) (fun e => evalLocal g (.event e)) true e
        (sinceBehind (fun x => w.covers anchor x.time) f.eval g.eval past) =
      sinceBehind (fun x => w.covers anchor x.time) f.eval g.eval (.event e :: past) := by
  rw [sinceBehind, evalSince_eq, sinceStep, evalLocal_eq local_f (.event e) past, evalLocal_eq local_g (.event e) past]
  show _ = andThen _ fun held => andThen _ fun witness => andThen _ fun earlier =>
    .ok (cond (cond (w.covers anchor e.time) witness false) true (cond held earlier false))
  rcases f.eval (.event e) past with _ | _ | _ <;> rcases g.eval (.event e) past with _ | _ | _ <;>
    rcases sinceBehind (fun x => w.covers anchor x.time) f.eval g.eval past with _ | _ | _ <;>
    cases w.covers anchor e.time <;> rfl

theorem scanOnce_cons {h : Event → Checked} {inside : Event → Bool} {e : Event} :
    scanOnce w anchor h inside (e :: journal) = onceStep w anchor h (inside e) e (scanOnce w anchor h inside journal) := rfl

theorem scanSince_cons {h k : Event → Checked} {inside : Event → Bool} {e : Event} :
    scanSince w anchor h k inside (e :: journal) = sinceStep w anchor h k (inside e) e (scanSince w anchor h k inside journal) := rfl

theorem scanOnce_eq (local_f : isLocal f = true) {key : Key} (found : scope.key (.pending p) = some key) :
    scanOnce w anchor (fun e => evalLocal f (.event e)) (inScope scope p) journal =
      onceBehind (fun x => w.covers anchor x.time) f.eval (scope.project key journal.past) := by
  induction journal with
  | nil => rfl
  | cons e journal ih =>
    rw [scanOnce_cons, ih, inScope_eq found]
    simp only [Journal.past, List.map_cons, Scope.project, List.filter_cons]
    cases scope.key (.event e) == some key
    · exact onceStep_outside
    · exact onceStep_inside local_f

theorem scanSince_eq (local_f : isLocal f = true) (local_g : isLocal g = true) {key : Key}
    (found : scope.key (.pending p) = some key) :
    scanSince w anchor (fun e => evalLocal f (.event e)) (fun e => evalLocal g (.event e)) (inScope scope p) journal =
      sinceBehind (fun x => w.covers anchor x.time) f.eval g.eval (scope.project key journal.past) := by
  induction journal with
  | nil => rfl
  | cons e journal ih =>
    rw [scanSince_cons, ih, inScope_eq found]
    simp only [Journal.past, List.map_cons, Scope.project, List.filter_cons]
    cases scope.key (.event e) == some key
    · exact sinceStep_outside
    · exact sinceStep_inside local_f local_g

/-! ### The whole -/

/-- The event in front, if there is one, has in every dimension what the pending call has there. -/
def Agrees (p : Pending) (front : Option Event) : Prop :=
  ∀ e, front = some e → ∀ d : Dimension, (d.read (.pending p)).isSome → d.read (.event e) = d.read (.pending p)

theorem Agrees.key {e : Event} (agrees : Agrees p (some e)) {key : Key} (found : scope.key (.pending p) = some key) :
    scope.key (.event e) = some key := by
  induction scope generalizing key with
  | nil => exact found
  | cons d scope ih =>
    rw [key_cons] at found ⊢
    obtain ⟨v, hv, found⟩ := Option.bind_eq_some_iff.mp found
    obtain ⟨rest, hr, rfl⟩ := Option.map_eq_some_iff.mp found
    rw [agrees e rfl d (by simp [hv]), hv, ih hr]
    rfl

theorem project_cons {e : Event} (agrees : Agrees p (some e)) {key : Key} (found : scope.key (.pending p) = some key) :
    scope.project key (withConsent (some e) journal).past = .event e :: scope.project key journal.past := by
  simp [Journal.past, Scope.project, agrees.key found]

theorem onceIn_eq (local_f : isLocal f = true) (agrees : Agrees p front) {key : Key} (found : scope.key (.pending p) = some key) :
    onceIn scope w f p front journal =
      (Formula.once w f).eval (.pending p) (scope.project key (withConsent front journal).past) := by
  simp only [Formula.eval]
  rw [evalOnce_eq, onceIn, evalLocal_eq local_f (.pending p) (scope.project key (withConsent front journal).past), scanOnce_eq local_f found]
  match front, agrees with
  | none, _ => rfl
  | some e, agrees =>
    rw [project_cons agrees found]
    simp only [onceStep_inside local_f]
    rfl

theorem sinceIn_eq (local_f : isLocal f = true) (local_g : isLocal g = true) (agrees : Agrees p front) {key : Key}
    (found : scope.key (.pending p) = some key) :
    sinceIn scope w f g p front journal =
      (Formula.since w f g).eval (.pending p) (scope.project key (withConsent front journal).past) := by
  simp only [Formula.eval]
  rw [evalSince_eq, sinceIn, evalLocal_eq local_f (.pending p) (scope.project key (withConsent front journal).past),
    evalLocal_eq local_g (.pending p) (scope.project key (withConsent front journal).past), scanSince_eq local_f local_g found]
  match front, agrees with
  | none, _ => rfl
  | some e, agrees =>
    rw [project_cons agrees found]
    simp only [sinceStep_inside local_f local_g]
    rfl

theorem within_eq (agrees : Agrees p front) :
    within scope f p front journal = (Formula.within scope f).eval (.pending p) (withConsent front journal).past := by
  have key : hasKey scope p = true ∧ (∃ key, scope.key (.pending p) = some key) ∨
      hasKey scope p = false ∧ scope.key (.pending p) = none := by
    rw [hasKey_eq]
    cases scope.key (.pending p) <;> simp
  cases f with
  | atom name holds =>
    show cond (hasKey scope p) (holds (.pending p)) (.error scope.missing) = _
    rcases key with ⟨h, key, found⟩ | ⟨h, found⟩ <;> simp [h, found, Formula.eval]
  | top =>
    show cond (hasKey scope p) (.ok true : Checked) (.error scope.missing) = _
    rcases key with ⟨h, key, found⟩ | ⟨h, found⟩ <;> simp [h, found, Formula.eval]
  | bot =>
    show cond (hasKey scope p) (.ok false : Checked) (.error scope.missing) = _
    rcases key with ⟨h, key, found⟩ | ⟨h, found⟩ <;> simp [h, found, Formula.eval]
  | not | and | or | previous | within => rfl
  | once w f =>
    show cond (isLocal f) (cond (hasKey scope p) (onceIn scope w f p front journal) (.error scope.missing)) _ = _
    cases local_f : isLocal f
    · rfl
    · rcases key with ⟨h, key, found⟩ | ⟨h, found⟩
      · rw [h]
        simp only [cond_true]
        rw [onceIn_eq local_f agrees found]
        simp only [Formula.eval, found]
      · simp [h, found, Formula.eval]
  | since w f g =>
    show cond (cond (isLocal f) (isLocal g) false)
      (cond (hasKey scope p) (sinceIn scope w f g p front journal) (.error scope.missing)) _ = _
    cases local_f : isLocal f
    · rfl
    · cases local_g : isLocal g
      · rfl
      · rcases key with ⟨h, key, found⟩ | ⟨h, found⟩
        · rw [h]
          simp only [cond_true]
          rw [sinceIn_eq local_f local_g agrees found]
          simp only [Formula.eval, found]
        · simp [h, found, Formula.eval]

/-- The kernel's evaluation of a condition is that of the evaluator. -/
theorem eval_eq (agrees : Agrees p front) : eval f p front journal = f.eval (.pending p) (withConsent front journal).past := by
  induction f with
  | atom | top | bot | previous | once | since => rfl
  | within => exact within_eq agrees
  | not f ih =>
    show andThen (eval f p front journal) _ = _
    rw [ih]
    simp only [Formula.eval]
    rcases f.eval _ _ with _ | _ | _ <;> rfl
  | and f g ihf ihg =>
    show andThen (eval f p front journal) (fun x => andThen (eval g p front journal) _) = _
    rw [ihf, ihg]
    simp only [Formula.eval]
    rcases f.eval _ _ with _ | _ | _ <;> rcases g.eval _ _ with _ | _ | _ <;> rfl
  | or f g ihf ihg =>
    show andThen (eval f p front journal) (fun x => andThen (eval g p front journal) _) = _
    rw [ihf, ihg]
    simp only [Formula.eval]
    rcases f.eval _ _ with _ | _ | _ <;> rcases g.eval _ _ with _ | _ | _ <;> rfl

/-! ### Decisions -/

theorem sameSymbol_eq {a b : Symbol} : sameSymbol a b = (a == b) := by
  rw [Bool.eq_iff_iff, sameSymbol_iff, beq_iff_eq]

theorem find_eq {fields : Fields} {name : Symbol} : find fields name = fields.find? name := by
  induction fields with
  | nil => rfl
  | cons f fields ih =>
    obtain ⟨n, v⟩ := f
    show cond (sameSymbol name n) (some v) (find fields name) = _
    rw [ih, sameSymbol_eq]
    simp only [Fields.find?, List.lookup]
    cases name == n <;> rfl

theorem fits_iff {c : Contract} {arguments : Fields} : fits c arguments = true ↔ c.violations arguments = [] := by
  have one (q : Parameter) : parameterFits q arguments = true ↔ (match arguments.find? q.name with
      | none => if q.required then [(⟨s!"arguments.{q.name}: missing, expected {q.type.describe}"⟩ : EvalError)] else []
      | some v =>
        if q.type.accepts v then []
        else [⟨s!"arguments.{q.name}: expected {q.type.describe}, found {v.typeName}"⟩]) = [] := by
    simp only [parameterFits, find_eq]
    cases arguments.find? q.name with
    | none => cases q.required <;> simp
    | some v => cases q.type.accepts v <;> simp
  have all (parameters : List Parameter) : List.rec (motive := fun _ => Bool) true
      (fun q _ rest => cond (parameterFits q arguments) rest false) parameters = true ↔
        ∀ q ∈ parameters, parameterFits q arguments = true := by
    induction parameters with
    | nil => simp
    | cons q parameters ih =>
      cases h : parameterFits q arguments <;> simp [h]
      simpa using ih
  have known (parameters : List Parameter) (name : Symbol) : isParameter parameters name = parameters.any (·.name == name) := by
    induction parameters with
    | nil => rfl
    | cons q parameters ih =>
      show cond (sameSymbol q.name name) true (isParameter parameters name) = _
      rw [ih, sameSymbol_eq, List.any_cons]
      cases q.name == name <;> rfl
  have names (fields : Fields) : List.rec (motive := fun _ => Bool) true
      (fun f _ rest => cond (isParameter c.parameters f.1) rest false) fields = true ↔
        ∀ f ∈ fields, c.parameters.any (·.name == f.1) = true := by
    induction fields with
    | nil => simp
    | cons f fields ih =>
      rw [List.forall_mem_cons, ← ih, ← known]
      cases h : isParameter c.parameters f.1 <;> simp [h]
  have both (a b : Bool) : cond a b false = true ↔ a = true ∧ b = true := by cases a <;> simp
  rw [fits, both, all, names]
  simp only [Contract.violations, List.append_eq_nil_iff, List.flatMap_eq_nil_iff, List.map_eq_nil_iff, List.filter_eq_nil_iff]
  refine and_congr (forall_congr' fun q => forall_congr' fun _ => one q) (forall_congr' fun f => forall_congr' fun _ => ?_)
  cases c.parameters.any (·.name == f.1) <;> simp

variable {policy : Policy} {contract : Contract} {rules : List Rule} {rule : Rule} {call : Call} {snapshot : Snapshot}

theorem allOK_iff : allOK rules p front journal = true ↔ ∀ r ∈ rules, ruleOK r.kind (eval r.condition p front journal) = true := by
  induction rules with
  | nil => simp [allOK]
  | cons r rules ih =>
    show cond (ruleOK r.kind (eval r.condition p front journal)) (allOK rules p front journal) false = true ↔ _
    rw [List.forall_mem_cons, ← ih]
    cases ruleOK r.kind (eval r.condition p front journal) <;> simp

/-- The rules one by one, each in whatever form it was evaluated. -/
theorem allOK_cons (r : Rule) (rules : List Rule) (p : Pending) (front : Option Event) (journal : Journal) (b bs : Bool)
    (one : ruleOK r.kind (eval r.condition p front journal) = b) (rest : allOK rules p front journal = bs) :
    allOK (r :: rules) p front journal = Bool.rec (motive := fun _ => Bool) false bs b := by
  subst one rest
  show cond (ruleOK r.kind (eval r.condition p front journal)) (allOK rules p front journal) false = _
  cases ruleOK r.kind (eval r.condition p front journal) <;> rfl

/-- The decision from its parts, each in whatever form it was evaluated. -/
theorem admits_parts (c : Contract) (rules : List Rule) (call : Call) (snapshot : Snapshot) (front : Option Event) (journal : Journal)
    (x y z : Bool) (fit : fits c call.arguments = x) (all : allOK rules (c.pending call snapshot) front journal = y)
    (permit : permitted rules (c.pending call snapshot) front journal = z) :
    admits c rules call snapshot front journal =
      Bool.rec (motive := fun _ => Bool) false (Bool.rec (motive := fun _ => Bool) false z y) x := by
  subst fit all permit
  simp only [admits]
  cases fits c call.arguments
  · rfl
  · cases allOK rules (c.pending call snapshot) front journal <;> rfl

/-- Reading a field in the kernel's way and in the evaluator's is the same function. -/
theorem find_fun : @Fields.find? = @find := funext fun _ => funext fun _ => find_eq.symm

/-- Reading a field that must be there in the kernel's way and in the evaluator's is the same function. -/
theorem need_fun : @Fields.need = @need := by
  funext fields name
  simp only [Fields.need, need, find_eq]
  cases fields.find? name <;> rfl

/-- Comparing symbols in the kernel's way and in the policies' is the same function. -/
theorem same_fun : declaredSame = sameSymbol := funext fun _ => funext fun _ => sameSymbol_eq.symm

theorem permitted_iff : permitted rules p front journal = true ↔
    ∃ r ∈ rules, r.kind = .permit ∧ eval r.condition p front journal = .ok true := by
  induction rules with
  | nil => simp [permitted]
  | cons r rules ih =>
    show RuleKind.rec (motive := fun _ => Bool) (Except.rec (motive := fun _ => Bool) (fun _ => permitted rules p front journal)
      (fun b => cond b true (permitted rules p front journal)) (eval r.condition p front journal)) (permitted rules p front journal)
      (permitted rules p front journal) r.kind = true ↔ _
    simp only [List.mem_cons, exists_eq_or_imp, ← ih]
    rcases eval r.condition p front journal with _ | _ | _ <;> cases r.kind <;> simp

/-- A call is admitted where the kernel's evaluation says so. -/
theorem admit_of (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (agrees : Agrees (contract.pending call snapshot) front) (check : admits contract rules call snapshot front journal = true) :
    policy.decide call snapshot (withConsent front journal) = .admit := by
  have both {a b : Bool} (h : cond a b false = true) : a = true ∧ b = true := by cases a <;> simp_all
  obtain ⟨h₁, h₂⟩ := both check
  obtain ⟨h₂, h₃⟩ := both h₂
  refine decide_eq_admit_iff.mpr ⟨contract, found, fits_iff.mp h₁, conclude_results_iff.mpr ?_⟩
  subst applicable
  rw [allOK_iff] at h₂
  rw [permitted_iff] at h₃
  simp only [eval_eq agrees] at h₂ h₃
  refine ⟨h₃, fun r member kind => ?_, fun r member kind => ?_, fun r member e err => ?_⟩ <;> have := h₂ r member
  · rw [kind] at this
    revert this
    rcases r.condition.eval _ _ with _ | _ | _ <;> simp [ruleOK]
  · rw [kind] at this
    revert this
    rcases r.condition.eval _ _ with _ | _ | _ <;> simp [ruleOK]
  · rw [err] at this
    cases this

/-- An admitted call comes out as admitted in the kernel's evaluation. -/
theorem of_admit (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (admitted : policy.decide call snapshot journal = .admit) :
    fits contract call.arguments = true ∧ (∀ r ∈ rules, ruleOK r.kind (eval r.condition (contract.pending call snapshot) none journal) = true) ∧
      permitted rules (contract.pending call snapshot) none journal = true := by
  obtain ⟨contract', found', fit, concluded⟩ := decide_eq_admit_iff.mp admitted
  obtain rfl : contract = contract' := Option.some.inj (found.symm.trans found')
  obtain ⟨permits, requires, forbids, errors⟩ := conclude_results_iff.mp concluded
  subst applicable
  have agrees : Agrees (contract.pending call snapshot) none := fun _ h => by cases h
  have same (f : Formula) : eval f (contract.pending call snapshot) none journal =
      f.eval (.pending (contract.pending call snapshot)) journal.past := eval_eq agrees
  refine ⟨fits_iff.mpr fit, fun r member => ?_, ?_⟩
  · rw [same]
    cases kind : r.kind
    · have := errors r member
      rcases h : r.condition.eval _ _ with e | b
      · exact absurd h (this e)
      · rfl
    · rw [requires r member kind]
      rfl
    · rw [forbids r member kind]
      rfl
  · rw [permitted_iff]
    simpa only [same] using permits

theorem nth_mem {α : Type} {a : α} : {l : List α} → {n : Nat} → nth l n = some a → a ∈ l
  | [], _, h => by cases h
  | b :: l, 0, h => by
    obtain rfl : b = a := Option.some.inj h
    simp
  | b :: l, n + 1, h => List.mem_cons_of_mem b (nth_mem (l := l) (n := n) h)

/-- A rule that did not come to what its kind asks denies the call. -/
theorem denied_of_rule (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (place : Nat) (member : nth rules place = some rule)
    (check : ruleOK rule.kind (eval rule.condition (contract.pending call snapshot) none journal) = false) :
    policy.decide call snapshot journal ≠ .admit := fun admitted => by
  rw [(of_admit found applicable admitted).2.1 rule (nth_mem member)] at check
  cases check

/-- Where no permit holds, the call is denied. -/
theorem denied_of_permits (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (check : permitted rules (contract.pending call snapshot) none journal = false) :
    policy.decide call snapshot journal ≠ .admit := fun admitted => by
  rw [(of_admit found applicable admitted).2.2] at check
  cases check

/-- A call whose arguments do not fit is denied. -/
theorem denied_of_arguments (found : policy.contract? call.tool = some contract) (check : fits contract call.arguments = false) :
    policy.decide call snapshot journal ≠ .admit := fun admitted => by
  rw [(of_admit found rfl admitted).1] at check
  cases check

/-- A call of a tool that has no contract is denied. -/
theorem denied_of_tool (none : policy.contract? call.tool = none) : policy.decide call snapshot journal ≠ .admit := fun admitted => by
  obtain ⟨_, found, -⟩ := decide_eq_admit_iff.mp admitted
  rw [none] at found
  cases found

/-- The customer's consent to a call is in every scope of that call. -/
theorem agrees_consent (found : policy.contract? call.tool = some contract) :
    Agrees (contract.pending call snapshot) (some (policy.consentFor call snapshot)) := by
  intro e h d _
  obtain rfl := Option.some.inj h
  cases d <;> simp [Dimension.read, Policy.consentFor, Policy.pendingOf, Contract.pending, Moment.principal, Moment.conversation,
    Moment.resource, Moment.revision, Moment.call, found]

theorem agrees_none : Agrees p none := fun _ h => by cases h

/-- The repaired call is admitted in the journal as it is. -/
theorem admitted_now (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (check : admits contract rules call snapshot none journal = true) :
    policy.decide call snapshot (policy.consented false call snapshot journal) = .admit :=
  admit_of (front := none) found applicable agrees_none check

/-- The repaired call is admitted once the customer has confirmed it. -/
theorem admitted_with_consent (found : policy.contract? call.tool = some contract) (applicable : policy.applicable contract = rules)
    (check : admits contract rules call snapshot (some (policy.consentFor call snapshot)) journal = true) :
    policy.decide call snapshot (policy.consented true call snapshot journal) = .admit :=
  admit_of (front := some _) found applicable (agrees_consent found) check

/-! ### Edits -/

variable {intent : Intent} {original edited : Call}

theorem offer_some {pending : Pending} {name : Symbol} {source place : Nat} {v : Value}
    (h : offer intent pending name source place = some v) :
    ∃ s ∈ intent.sources, pending.call.tool ∈ s.tools ∧ s.argument = name ∧ v ∈ s.candidates pending := by
  have one (s : Symbol) (l : List Symbol) (h : isOneOf s l = true) : s ∈ l := by
    induction l with
    | nil => cases h
    | cons a l ih =>
      have h : cond (sameSymbol s a) true (isOneOf s l) = true := h
      cases same : sameSymbol s a
      · exact List.mem_cons_of_mem a (ih (by simpa [same] using h))
      · simp [sameSymbol_iff.mp same]
  simp only [offer] at h
  cases at_ : nth intent.sources source with
  | none => simp [at_] at h
  | some s =>
    simp only [at_, offerOf] at h
    cases h₁ : sameSymbol s.argument name
    · simp [h₁] at h
    · cases h₂ : isOneOf pending.call.tool s.tools
      · simp [h₁, h₂] at h
      · simp only [h₁, h₂, cond_true] at h
        exact ⟨s, nth_mem at_, one _ _ h₂, sameSymbol_iff.mp h₁, nth_mem h⟩

theorem edited_sound {pending : Pending} {before after : Fields} (h : Edited intent pending before after) :
    after.map (·.1) = before.map (·.1) ∧ ∀ pair ∈ before.zip after, pair.2.2 = pair.1.2 ∨
      ∃ s ∈ intent.sources, pending.call.tool ∈ s.tools ∧ s.argument = pair.1.1 ∧ pair.2.2 ∈ s.candidates pending := by
  induction h with
  | nil => simp
  | same name v _ ih =>
    refine ⟨by simp [ih.1], fun pair member => ?_⟩
    rcases List.mem_cons.mp member with rfl | member
    · exact .inl rfl
    · exact ih.2 pair member
  | changed name v v' source place offered _ ih =>
    refine ⟨by simp [ih.1], fun pair member => ?_⟩
    rcases List.mem_cons.mp member with rfl | member
    · exact .inr (offer_some offered)
    · exact ih.2 pair member

/-- An edit whose every change a source offers, and that keeps what must be kept, keeps the intent. -/
theorem editOK_of (tool : edited.tool = original.tool)
    (arguments : Edited intent (policy.pendingOf original snapshot) original.arguments edited.arguments)
    (keeps : keepsAll intent.keeps (policy.pendingOf original snapshot) (policy.pendingOf edited snapshot) = true) :
    EditOK policy intent snapshot original edited := by
  obtain ⟨names, values⟩ := edited_sound arguments
  refine ⟨tool, names, values, fun keep member applies => ?_⟩
  have all (keeps : List Keep) (h : keepsAll keeps (policy.pendingOf original snapshot) (policy.pendingOf edited snapshot) = true) :
      ∀ k ∈ keeps, k.holds (policy.pendingOf original snapshot) (policy.pendingOf edited snapshot) = true := by
    induction keeps with
    | nil => simp
    | cons k keeps ih =>
      have h : cond (k.holds (policy.pendingOf original snapshot) (policy.pendingOf edited snapshot)) (keepsAll keeps _ _) false = true := h
      cases h' : k.holds (policy.pendingOf original snapshot) (policy.pendingOf edited snapshot)
      · simp [h'] at h
      · exact List.forall_mem_cons.mpr ⟨h', ih (by simpa [h'] using h)⟩
  exact Keep.holds_sound (all _ keeps keep member) applies

end LeanGuard.Fast
