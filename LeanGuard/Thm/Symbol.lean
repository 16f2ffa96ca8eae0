import LeanGuard.Spec.Symbol

namespace LeanGuard.Symbol

/-- Two symbols are equal exactly when the strings they stand for are. -/
theorem ofString_inj {s t : String} : ofString s = ofString t ↔ s = t :=
  ⟨fun h => congrArg text h, fun h => congrArg ofString h⟩

/-- Every symbol is the symbol of its text. -/
theorem ofString_text (s : Symbol) : ofString s.text = s := ext rfl

end LeanGuard.Symbol
