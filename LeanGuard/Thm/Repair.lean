import LeanGuard.Repair.Search

/-! # Repairs keep the intent and are admitted -/

namespace LeanGuard

variable {policy : Policy} {intent : Intent} {snapshot : Snapshot} {journal : Journal} {original edited : Call}

/-- What a repair is: its edit keeps the intent; it is admitted in the journal as it is, or, where it needs consent, in the journal in which
the customer has confirmed exactly the edited call. -/
theorem repair_sound (repair : Repair policy intent snapshot journal original) :
    EditOK policy intent snapshot original repair.edited ∧
      (repair.needsConsent = false → policy.decide repair.edited snapshot journal = .admit) ∧
      (repair.needsConsent = true →
        policy.decide repair.edited snapshot (policy.consentFor repair.edited snapshot :: journal) = .admit) := by
  obtain ⟨edited, needs, ok, admitted⟩ := repair
  refine ⟨ok, fun h => ?_, fun h => ?_⟩ <;> subst h <;> exact admitted

/-- An argument that no source of the tool is about keeps its value: items, amounts and the resource can't change. -/
theorem EditOK.unoffered_stays (ok : EditOK policy intent snapshot original edited) {name : Symbol} {before after : Value}
    (pair : ((name, before), (name, after)) ∈ original.arguments.zip edited.arguments)
    (none : ∀ source ∈ intent.sources, original.tool ∈ source.tools → source.argument ≠ name) : after = before := by
  rcases ok.values _ pair with h | ⟨source, member, tool, argument, -⟩
  · exact h
  · exact absurd argument (none source member tool)

/-- Where a search ends in a repair, it is one: what `repair_sound` says holds of it. -/
theorem searchRepair_sound {budget : Nat} {found : Call × Bool}
    (h : (searchRepair policy intent snapshot journal original budget).found = some found) :
    EditOK policy intent snapshot original found.1 ∧
      policy.decide found.1 snapshot (policy.consented found.2 found.1 snapshot journal) = .admit :=
  searchRepair_found h

end LeanGuard
