import LeanGuard.Repair.Defs
import LeanGuard.Thm.Admission

/-!
# Decisions in few steps of the kernel

A proof about one decision is checked by evaluation. The evaluator of record spends most of the kernel's steps on scopes (keys of values, a
filtered journal for each rule) and on messages that nobody reads. Here is the same evaluation arranged so that the kernel does little: an
event is compared with a scope only if a condition asks for it, dimension by dimension, symbols by their numbers. Every definition is proved
equal to what it stands for; nothing here is ever run.
-/

namespace LeanGuard.Fast

/-! ### Definitions -/

/-- Sequencing without the machinery of monads. -/
noncomputable abbrev andThen (c : Checked) (next : Bool → Checked) : Checked :=
  Except.rec (motive := fun _ => Checked) (fun e => .error e) (fun b => next b) c

/-- Whether the formula is about one moment alone. -/
noncomputable def isLocal (f : Formula) : Bool :=
  Formula.rec (motive := fun _ => Bool) (fun _ _ => true) true true (fun _ a => a) (fun _ _ a b => cond a b false) (fun _ _ a b => cond a b false)
    (fun _ _ _ => false) (fun _ _ _ => false) (fun _ _ _ _ _ => false) (fun _ _ _ => false) f

/-- The truth of a formula that is about one moment alone. -/
noncomputable def evalLocal (f : Formula) : Moment → Checked :=
  Formula.rec (motive := fun _ => Moment → Checked) (fun _ holds m => holds m) (fun _ => .ok true) (fun _ => .ok false)
    (fun _ a m => andThen (a m) fun x => .ok (cond x false true))
    (fun _ _ a b m => andThen (a m) fun x => andThen (b m) fun y => .ok (cond x y false))
    (fun _ _ a b m => andThen (a m) fun x => andThen (b m) fun y => .ok (cond x true y))
    (fun _ _ _ _ => .ok false) (fun _ _ _ _ => .ok false) (fun _ _ _ _ _ _ => .ok false) (fun _ _ _ _ => .ok false) f

/-- The comparison of symbols that policies are written with. -/
abbrev declaredSame : Symbol → Symbol → Bool := BEq.beq

noncomputable def sameSymbol (a b : Symbol) : Bool := Nat.beq (a.code ()) (b.code ())

noncomputable def sameOption (a b : Option Symbol) : Bool :=
  Option.rec (motive := fun _ => Bool) (Option.rec (motive := fun _ => Bool) true (fun _ => false) b)
    (fun x => Option.rec (motive := fun _ => Bool) false (fun y => sameSymbol x y) b) a

noncomputable def sameResource (a b : Option Resource) : Bool :=
  Option.rec (motive := fun _ => Bool) (Option.rec (motive := fun _ => Bool) true (fun _ => false) b)
    (fun x => Option.rec (motive := fun _ => Bool) false (fun y => cond (sameSymbol x.id y.id) (sameSymbol x.type y.type) false) b) a

/-- Whether an event has in this dimension what the pending call has. -/
noncomputable def sameIn (d : Dimension) (p : Pending) (e : Event) : Bool :=
  Dimension.rec (motive := fun _ => Bool) (sameOption e.principal p.snapshot.principal) (sameOption e.conversation p.snapshot.conversation)
    (sameResource e.resource p.resource) (sameOption e.revision (some p.snapshot.revision))
    (Option.rec (motive := fun _ => Bool) false (fun c => cond (sameSymbol c.tool p.call.tool)
      (Value.beqFields c.arguments p.call.arguments) false) e.call)
    (Option.rec (motive := fun _ => Bool) false (fun c => sameSymbol c.tool p.call.tool) e.call)
    (fun name => (e.call.bind fun c => c.arguments.find? name) == p.call.arguments.find? name) d

/-- Whether an event is in the scope of the pending call. -/
noncomputable def inScope (scope : Scope) (p : Pending) (e : Event) : Bool :=
  List.rec (motive := fun _ => Bool) true (fun d _ rest => cond (sameIn d p e) rest false) scope

/-- Whether the pending call has something in every dimension of the scope. -/
noncomputable def hasKey (scope : Scope) (p : Pending) : Bool :=
  List.rec (motive := fun _ => Bool) true (fun d _ rest => cond (Dimension.read d (.pending p)).isSome rest false) scope

/-- One event of `once`, given what the older ones come to. -/
noncomputable def onceStep (w : Window) (anchor : Time) (p : Event → Checked) (inside : Bool) (e : Event) (older : Checked) : Checked :=
  Except.rec (motive := fun _ => Checked) (fun x => cond inside (.error x) older)
    (fun held => cond held (cond inside (cond (w.covers anchor e.time) (andThen older fun _ => .ok true) older) older) older) (p e)

noncomputable def scanOnce (w : Window) (anchor : Time) (p : Event → Checked) (inside : Event → Bool) (journal : Journal) : Checked :=
  List.rec (motive := fun _ => Checked) (.ok false) (fun e _ older => onceStep w anchor p (inside e) e older) journal

/-- One event of `since`, in the scope, given what the older ones come to. -/
noncomputable def sinceInside (covered : Bool) (held witness : Checked) (older : Checked) : Checked :=
  andThen held fun a => andThen witness fun b => andThen older fun c => .ok (cond (cond covered b false) true (cond a c false))

/-- One event of `since`. An event at which the first condition holds and the second does not changes nothing, wherever it is. -/
noncomputable def sinceStep (w : Window) (anchor : Time) (p q : Event → Checked) (inside : Bool) (e : Event) (older : Checked) : Checked :=
  Except.rec (motive := fun _ => Checked) (fun x => cond inside (.error x) older)
    (fun a => Except.rec (motive := fun _ => Checked) (fun x => cond inside (.error x) older)
      (fun b => cond (cond a (cond b false true) false) older
        (cond inside (andThen older fun c => .ok (cond (cond (w.covers anchor e.time) b false) true (cond a c false))) older)) (q e)) (p e)

noncomputable def scanSince (w : Window) (anchor : Time) (p q : Event → Checked) (inside : Event → Bool) (journal : Journal) : Checked :=
  List.rec (motive := fun _ => Checked) (.ok false) (fun e _ older => sinceStep w anchor p q (inside e) e older) journal

/-- The events: the consent that the customer has yet to give, if any, and the journal. -/
abbrev withConsent (front : Option Event) (journal : Journal) : Journal := front.toList ++ journal

/-- `once` in a scope: at the pending moment, at the consent in front, and in the journal. -/
noncomputable def onceIn (scope : Scope) (w : Window) (f : Formula) (p : Pending) (front : Option Event) (journal : Journal) : Checked :=
  andThen (evalLocal f (.pending p)) fun here =>
    andThen (Option.rec (motive := fun _ => Checked) (scanOnce w p.snapshot.time (fun e => evalLocal f (.event e)) (inScope scope p) journal)
      (fun e => onceStep w p.snapshot.time (fun e => evalLocal f (.event e)) true e
        (scanOnce w p.snapshot.time (fun e => evalLocal f (.event e)) (inScope scope p) journal)) front)
    fun earlier => .ok (cond (cond (w.covers p.snapshot.time p.snapshot.time) here false) true earlier)

/-- `since` in a scope. -/
noncomputable def sinceIn (scope : Scope) (w : Window) (f g : Formula) (p : Pending) (front : Option Event) (journal : Journal) : Checked :=
  andThen (evalLocal f (.pending p)) fun held => andThen (evalLocal g (.pending p)) fun witness =>
    andThen (Option.rec (motive := fun _ => Checked)
      (scanSince w p.snapshot.time (fun e => evalLocal f (.event e)) (fun e => evalLocal g (.event e)) (inScope scope p) journal)
      (fun e => sinceStep w p.snapshot.time (fun e => evalLocal f (.event e)) (fun e => evalLocal g (.event e)) true e
        (scanSince w p.snapshot.time (fun e => evalLocal f (.event e)) (fun e => evalLocal g (.event e)) (inScope scope p) journal)) front)
    fun earlier => .ok (cond (cond (w.covers p.snapshot.time p.snapshot.time) witness false) true (cond held earlier false))

/-- `within` a scope, around a formula. -/
noncomputable def within (scope : Scope) (f : Formula) (p : Pending) (front : Option Event) (journal : Journal) : Checked :=
  Formula.rec (motive := fun _ => Checked)
    (fun _ holds => cond (hasKey scope p) (holds (.pending p)) (.error scope.missing))
    (cond (hasKey scope p) (.ok true) (.error scope.missing)) (cond (hasKey scope p) (.ok false) (.error scope.missing))
    (fun f _ => general (.not f)) (fun f g _ _ => general (.and f g)) (fun f g _ _ => general (.or f g))
    (fun w f _ => general (.previous w f))
    (fun w f _ => cond (isLocal f) (cond (hasKey scope p) (onceIn scope w f p front journal) (.error scope.missing)) (general (.once w f)))
    (fun w f g _ _ => cond (cond (isLocal f) (isLocal g) false)
      (cond (hasKey scope p) (sinceIn scope w f g p front journal) (.error scope.missing)) (general (.since w f g)))
    (fun s f _ => general (.within s f)) f
where
  general (f : Formula) : Checked := (Formula.within scope f).eval (.pending p) (withConsent front journal).past

/-- The truth of a rule's condition at the pending moment. -/
noncomputable def eval (f : Formula) (p : Pending) (front : Option Event) (journal : Journal) : Checked :=
  Formula.rec (motive := fun _ => Checked)
    (fun _ holds => holds (.pending p)) (.ok true) (.ok false)
    (fun _ a => andThen a fun x => .ok (cond x false true))
    (fun _ _ a b => andThen a fun x => andThen b fun y => .ok (cond x y false))
    (fun _ _ a b => andThen a fun x => andThen b fun y => .ok (cond x true y))
    (fun w f _ => general (.previous w f)) (fun w f _ => general (.once w f)) (fun w f g _ _ => general (.since w f g))
    (fun scope f _ => within scope f p front journal) f
where
  general (f : Formula) : Checked := f.eval (.pending p) (withConsent front journal).past

/-! ### Decisions -/

/-- Whether a rule's condition came to what its kind asks: a permit may be true or false. -/
noncomputable def ruleOK (kind : RuleKind) (c : Checked) : Bool :=
  Except.rec (motive := fun _ => Bool) (fun _ => false)
    (fun b => RuleKind.rec (motive := fun _ => Bool) true b (cond b false true) kind) c

noncomputable def allOK (rules : List Rule) (p : Pending) (front : Option Event) (journal : Journal) : Bool :=
  List.rec (motive := fun _ => Bool) true (fun r _ rest => cond (ruleOK r.kind (eval r.condition p front journal)) rest false) rules

/-- Whether a permit holds. -/
noncomputable def permitted (rules : List Rule) (p : Pending) (front : Option Event) (journal : Journal) : Bool :=
  List.rec (motive := fun _ => Bool) false (fun r _ rest => RuleKind.rec (motive := fun _ => Bool)
    (Except.rec (motive := fun _ => Bool) (fun _ => rest) (fun b => cond b true rest) (eval r.condition p front journal)) rest rest r.kind) rules

/-- The value of the first field of that name. -/
noncomputable def find (fields : Fields) (name : Symbol) : Option Value :=
  List.rec (motive := fun _ => Option Value) none (fun f _ rest => cond (sameSymbol name f.1) (some f.2) rest) fields

/-- A field that must be there. Kept whole where conditions are unfolded: they read many fields, and what is read of each would swell them. -/
noncomputable def need (fields : Fields) (name : Symbol) : Read Value :=
  Option.rec (motive := fun _ => Read Value) (unreadable s!"{name}: missing") (fun v => .ok v) (find fields name)

noncomputable def parameterFits (q : Parameter) (arguments : Fields) : Bool :=
  Option.rec (motive := fun _ => Bool) (cond q.required false true) (fun v => q.type.accepts v) (find arguments q.name)

noncomputable def isParameter (parameters : List Parameter) (name : Symbol) : Bool :=
  List.rec (motive := fun _ => Bool) false (fun q _ rest => cond (sameSymbol q.name name) true rest) parameters

/-- Whether the arguments fit the contract. -/
noncomputable def fits (c : Contract) (arguments : Fields) : Bool :=
  cond (List.rec (motive := fun _ => Bool) true (fun q _ rest => cond (parameterFits q arguments) rest false) c.parameters)
    (List.rec (motive := fun _ => Bool) true (fun f _ rest => cond (isParameter c.parameters f.1) rest false) arguments) false

/-- Whether the call is admitted: the whole decision in one truth value. -/
noncomputable def admits (c : Contract) (rules : List Rule) (call : Call) (snapshot : Snapshot) (front : Option Event) (journal : Journal) : Bool :=
  cond (fits c call.arguments)
    (cond (allOK rules (c.pending call snapshot) front journal) (permitted rules (c.pending call snapshot) front journal) false) false

/-! ### Edits -/

/-- The item at that place. -/
noncomputable def nth {α : Type} (l : List α) : Nat → Option α :=
  List.rec (motive := fun _ => Nat → Option α) (fun _ => none)
    (fun a _ rest n => Nat.rec (motive := fun _ => Option α) (some a) (fun n _ => rest n) n) l

noncomputable def isOneOf (s : Symbol) (l : List Symbol) : Bool :=
  List.rec (motive := fun _ => Bool) false (fun a _ rest => cond (sameSymbol s a) true rest) l

/-- The value at a place of a source, if the source is about that argument of the call's tool. -/
noncomputable def offerOf (s : Source) (original : Pending) (name : Symbol) (place : Nat) : Option Value :=
  cond (cond (sameSymbol s.argument name) (isOneOf original.call.tool s.tools) false) (nth (s.candidates original) place) none

/-- The same for one of the intent's sources. -/
noncomputable def offer (intent : Intent) (original : Pending) (name : Symbol) (source place : Nat) : Option Value :=
  Option.rec (motive := fun _ => Option Value) none (fun s => offerOf s original name place) (nth intent.sources source)

/-- The arguments before and after, one by one. -/
inductive Edited (intent : Intent) (original : Pending) : Fields → Fields → Prop where
  | nil : Edited intent original [] []
  | same (name : Symbol) (v : Value) {before after : Fields} : Edited intent original before after →
      Edited intent original ((name, v) :: before) ((name, v) :: after)
  | changed (name : Symbol) (v v' : Value) (source place : Nat) {before after : Fields} :
      offer intent original name source place = some v' → Edited intent original before after →
      Edited intent original ((name, v) :: before) ((name, v') :: after)

noncomputable def keepsAll (keeps : List Keep) (original edited : Pending) : Bool :=
  List.rec (motive := fun _ => Bool) true (fun k _ rest => cond (k.holds original edited) rest false) keeps

/-! ### They are what they stand for -/

theorem sameSymbol_iff {a b : Symbol} : sameSymbol a b = true ↔ a = b :=
  ⟨fun h => Symbol.eq_iff_code.mpr (Nat.eq_of_beq_eq_true h), fun h => h ▸ Nat.beq_refl _⟩

theorem sameOption_iff {a b : Option Symbol} : sameOption a b = true ↔ a = b := by
  cases a <;> cases b <;> simp [sameOption, sameSymbol_iff]

theorem sameResource_iff {a b : Option Resource} : sameResource a b = true ↔ a = b := by
  rcases a with _ | ⟨t, i⟩ <;> rcases b with _ | ⟨t', i'⟩ <;> simp [sameResource]
  cases h : sameSymbol i i' <;> simp [← sameSymbol_iff, h]

theorem beqFields_iff {a b : Fields} : Value.beqFields a b = true ↔ a = b :=
  ⟨Value.eq_of_beqFields a b, fun h => h ▸ Value.beqFields_refl a⟩

theorem sameIn_iff {d : Dimension} {p : Pending} {e : Event} (some : (d.read (.pending p)).isSome) :
    sameIn d p e = true ↔ d.read (.event e) = d.read (.pending p) := by
  have inj {a b : Option Symbol} : a.map Value.sym = b.map .sym ↔ a = b := by cases a <;> cases b <;> simp
  cases d with
  | principal => simp [sameIn, sameOption_iff, Dimension.read, Moment.principal, inj]
  | conversation => simp [sameIn, sameOption_iff, Dimension.read, Moment.conversation, inj]
  | revision =>
    simp only [sameIn, sameOption_iff, Dimension.read, Moment.revision, inj]
  | resource =>
    simp only [sameIn, sameResource_iff, Dimension.read, Moment.resource]
    rcases e.resource with _ | ⟨t, i⟩ <;> rcases p.resource with _ | ⟨t', i'⟩ <;> simp
  | proposal =>
    simp only [sameIn, Dimension.read, Moment.call]
    rcases e.call with _ | ⟨t, a⟩ <;> simp
    cases h : sameSymbol t p.call.tool <;> simp [← sameSymbol_iff, h, beqFields_iff]
  | tool =>
    simp only [sameIn, Dimension.read, Moment.call]
    rcases e.call with _ | ⟨t, a⟩ <;> simp [sameSymbol_iff]
  | argument name => simp [sameIn, Dimension.read, Moment.call]

end LeanGuard.Fast
