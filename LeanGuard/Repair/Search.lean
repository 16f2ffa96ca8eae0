import LeanGuard.Repair.Defs

/-!
# The search

Tries the domain's candidates in order: first those that change one argument, then those that change two, and so on; among these in the order
of the sources. A candidate is checked for intent and then decided; the first that passes is the repair, and each that was rejected is kept
with what stopped it.
-/

namespace LeanGuard

/-! ### The intent, decided -/

theorem Intent.argumentsOK_sound {intent : Intent} {original : Pending} : (before after : Fields) →
    intent.argumentsOK original before after = true →
    after.map (·.1) = before.map (·.1) ∧ ∀ pair ∈ before.zip after, pair.2.2 = pair.1.2 ∨
      ∃ source ∈ intent.sources, original.call.tool ∈ source.tools ∧ source.argument = pair.1.1 ∧
        pair.2.2 ∈ source.candidates original
  | [], [], _ => by simp
  | [], _ :: _, h => by simp [argumentsOK] at h
  | _ :: _, [], h => by simp [argumentsOK] at h
  | (name, v) :: before, (name', v') :: after, h => by
    simp only [argumentsOK, Bool.and_eq_true, Bool.or_eq_true, beq_iff_eq] at h
    obtain ⟨⟨rfl, h⟩, rest⟩ := h
    obtain ⟨names, values⟩ := argumentsOK_sound before after rest
    refine ⟨by simp [names], fun pair member => ?_⟩
    simp only [List.zip_cons_cons, List.mem_cons] at member
    rcases member with rfl | member
    · rcases h with rfl | h
      · exact .inl rfl
      · simp only [offers, List.any_eq_true, Bool.and_eq_true, beq_iff_eq, List.contains_iff_mem] at h
        obtain ⟨source, member, ⟨argument, tool⟩, value⟩ := h
        exact .inr ⟨source, member, tool, argument, value⟩
    · exact values pair member

theorem Keep.holds_sound {keep : Keep} {original edited : Pending} (h : keep.holds original edited = true)
    (applies : original.call.tool ∈ keep.tools) : ∃ v, keep.measure original = .ok v ∧ keep.measure edited = .ok v := by
  simp only [Keep.holds, Bool.or_eq_true, Bool.not_eq_true'] at h
  rcases h with h | h
  · simp at h
    exact absurd applies h
  · split at h
    · rename_i a b ha hb
      obtain rfl := beq_iff_eq.mp h
      exact ⟨_, ha, hb⟩
    · cases h

/-- What the decision procedure lets pass keeps the intent. -/
theorem EditOK.of_permits {policy : Policy} {intent : Intent} {snapshot : Snapshot} {original edited : Call}
    (h : intent.permits policy snapshot original edited = true) : EditOK policy intent snapshot original edited := by
  simp only [Intent.permits, Bool.and_eq_true, beq_iff_eq, List.all_eq_true] at h
  obtain ⟨⟨tool, arguments⟩, keeps⟩ := h
  obtain ⟨names, values⟩ := Intent.argumentsOK_sound _ _ arguments
  refine ⟨tool, names, values, fun keep member applies => ?_⟩
  exact Keep.holds_sound (keeps keep member) applies

/-! ### Candidates -/

/-- One change: an argument's name and its new value. -/
abbrev Change := Symbol × Value

/-- The call with an argument's value replaced. -/
def Call.change (call : Call) (change : Change) : Call :=
  { call with arguments := call.arguments.map fun (name, v) => if name == change.1 then (name, change.2) else (name, v) }

/-- Every change that some source offers and that changes something, closest first, each once. -/
def Intent.changes (intent : Intent) (original : Pending) : List Change :=
  let offered := intent.sources.flatMap fun source =>
    if source.tools.contains original.call.tool then (source.candidates original).map (source.argument, ·) else []
  offered.foldl (init := []) fun seen change =>
    if original.call.arguments.lookup change.1 == some change.2 || seen.any (fun c => c.1 == change.1 && c.2 == change.2) then seen
    else seen ++ [change]

/-- The ways to choose `n` changes of different arguments, in order. -/
def choose : Nat → List Change → List (List Change)
  | 0, _ => [[]]
  | _ + 1, [] => []
  | n + 1, change :: rest =>
    ((choose n (rest.filter (·.1 != change.1))).map (change :: ·)) ++ choose (n + 1) rest

/-- At most so many arguments change at once. -/
def mostChanges : Nat := 2

/-- The edited calls to try, closest first. -/
def Intent.candidates (intent : Intent) (original : Pending) : List Call :=
  let changes := intent.changes original
  (List.range mostChanges).flatMap fun n =>
    (choose (n + 1) changes).map (·.foldl Call.change original.call)

/-! ### Trying them -/

/-- What stopped a candidate. -/
inductive Stop where
  /-- It would change what the user wants. -/
  | intent
  /-- The policy denies it, even with the customer's consent. -/
  | denied (failed : List Failure) (errors : List RuleError)

/-- What one candidate came to: it passes (and needs consent or not), or something stopped it. -/
def tryCandidate (policy : Policy) (intent : Intent) (snapshot : Snapshot) (journal : Journal) (original edited : Call) :
    Except Stop Bool :=
  if intent.permits policy snapshot original edited then
    match policy.decide edited snapshot (policy.consented false edited snapshot journal) with
    | .admit => .ok false
    | .deny .. =>
      match policy.decide edited snapshot (policy.consented true edited snapshot journal) with
      | .admit => .ok true
      | .deny failed errors => .error (.denied failed errors)
  else .error .intent

theorem tryCandidate_ok {policy : Policy} {intent : Intent} {snapshot : Snapshot} {journal : Journal} {original edited : Call}
    {needsConsent : Bool} (h : tryCandidate policy intent snapshot journal original edited = .ok needsConsent) :
    EditOK policy intent snapshot original edited ∧
      policy.decide edited snapshot (policy.consented needsConsent edited snapshot journal) = .admit := by
  unfold tryCandidate at h
  split at h
  · rename_i permitted
    refine ⟨.of_permits permitted, ?_⟩
    split at h
    · cases h; assumption
    · split at h <;> cases h
      assumption
  · cases h

/-- What a search came to. -/
structure Found where
  /-- The first candidate that passed, and whether it needs consent. -/
  found : Option (Call × Bool)
  /-- The candidates before it, with what stopped each. -/
  rejected : List (Call × Stop)
  /-- How many candidates were not tried, for want of budget. -/
  untried : Nat

/-- Tries candidates in order, at most so many. -/
def searchAmong (policy : Policy) (intent : Intent) (snapshot : Snapshot) (journal : Journal) (original : Call) :
    (budget : Nat) → List Call → Found
  | _, [] => ⟨none, [], 0⟩
  | 0, candidates => ⟨none, [], candidates.length⟩
  | budget + 1, edited :: rest =>
    match tryCandidate policy intent snapshot journal original edited with
    | .ok needsConsent => ⟨some (edited, needsConsent), [], 0⟩
    | .error stop =>
      let more := searchAmong policy intent snapshot journal original budget rest
      { more with rejected := (edited, stop) :: more.rejected }

/-- Searches for a repair of a denied call, among at most so many candidates. -/
def searchRepair (policy : Policy) (intent : Intent) (snapshot : Snapshot) (journal : Journal) (original : Call) (budget : Nat) : Found :=
  searchAmong policy intent snapshot journal original budget (intent.candidates (policy.pendingOf original snapshot))

theorem searchAmong_found {policy : Policy} {intent : Intent} {snapshot : Snapshot} {journal : Journal} {original : Call}
    {found : Call × Bool} : (budget : Nat) → (candidates : List Call) →
    (searchAmong policy intent snapshot journal original budget candidates).found = some found →
    tryCandidate policy intent snapshot journal original found.1 = .ok found.2
  | _, [], h => by simp [searchAmong] at h
  | 0, _ :: _, h => by simp [searchAmong] at h
  | budget + 1, edited :: rest, h => by
    unfold searchAmong at h
    split at h
    · cases h; assumption
    · exact searchAmong_found budget rest h

theorem searchRepair_found {policy : Policy} {intent : Intent} {snapshot : Snapshot} {journal : Journal} {original : Call}
    {budget : Nat} {found : Call × Bool} (h : (searchRepair policy intent snapshot journal original budget).found = some found) :
    EditOK policy intent snapshot original found.1 ∧
      policy.decide found.1 snapshot (policy.consented found.2 found.1 snapshot journal) = .admit :=
  tryCandidate_ok (searchAmong_found _ _ h)

end LeanGuard
