import Lean
import LeanGuard.Spec.Policy

/-!
# Conditions with their machinery unfolded

A policy's conditions are written with `do`, instances and matches, each of which costs the kernel many unfoldings at every evaluation. Here
they are unfolded once, when a tool is met first. The result is equal to the condition by definition, and the kernel checks that.
-/

namespace LeanGuard.Specialize

open Lean

/-- Whether a constant only takes cases. -/
def isCases : Name → Bool
  | .str _ s => s == "casesOn" || s.startsWith "_sparseCasesOn"
  | _ => false

/-- Whether a constant reads a value, or a field that must be there. Unfolded, these and their messages would be most of a condition, and go
through every substitution that the kernel makes in it. -/
def isReader : Name → Bool
  | `LeanGuard.Fields.need | `LeanGuard.Fast.need | `LeanGuard.Value.typeName | `LeanGuard.unreadable => true
  | .str `LeanGuard.Value s => s.startsWith "as"
  | _ => false

/-- Whether a constant is kept: numbers are computed by the kernel itself, symbols are data, and recursive functions stay folded. -/
def isKept (env : Environment) (n : Name) : Bool :=
  [`Nat, `Int, `String, `Char, `UInt32].contains n.getRoot || n == `LeanGuard.Symbol.literal || n == `LeanGuard.Symbol.quoted ||
    n == `LeanGuard.Fields.find? || isReader n ||
    match env.find? n with
    | some (.defnInfo d) =>
      -- Arranged for this: their recursion is over the policy, or over the journal in one place.
      !(`LeanGuard.Fast).isPrefixOf n &&
      (d.type.isConstOf `LeanGuard.Symbol || d.type.getForallBody.isConstOf ``String ||
        -- A function by recursion, unless it only takes cases.
        (!isCases n && d.value.getUsedConstants.any fun c => match c with
          | .str _ "brecOn" => true
          | .str _ "rec" => match env.find? c with
            | some (.recInfo r) => match env.find? r.getMajorInduct with
              | some (.inductInfo i) => i.isRec
              | _ => true
            | _ => true
          | _ => c == ``WellFounded.fix))
    | _ => true

/-- The constructor's fields, if the term is a constructor applied to all of them. -/
def constructor? (env : Environment) (e : Expr) : Option (ConstructorVal × Array Expr) := do
  let .const c _ := e.getAppFn | none
  let some (.ctorInfo c) := env.find? c | none
  guard (e.getAppNumArgs == c.numParams + c.numFields)
  return (c, e.getAppArgs.extract c.numParams e.getAppNumArgs)

/-- Unfolds what stands at the head: definitions, projections of constructors, cases on constructors. -/
partial def head (env : Environment) (e : Expr) : Expr :=
  let args := e.getAppArgs
  match e.getAppFn with
  | .mdata _ f => head env (mkAppN f args)
  | f@(.lam ..) => if args.isEmpty then e else head env (f.beta args)
  | .proj s i b =>
    let b := head env b
    match constructor? env b with
    | some (_, fields) => head env ((fields[i]?.getD (.proj s i b)).beta args)
    | none => mkAppN (.proj s i b) args
  | .const c levels =>
    match env.find? c with
    | some (.recInfo r) =>
      match args[r.getMajorIdx]? with
      | none => e
      | some major =>
        let major := head env major
        let args := args.set! r.getMajorIdx major
        match constructor? env major with
        | some (ctor, fields) =>
          match r.rules.find? (·.ctor == ctor.name) with
          | some rule =>
            let rhs := rule.rhs.instantiateLevelParams r.levelParams levels
            head env ((rhs.beta (args.extract 0 r.getFirstIndexIdx ++ fields)).beta (args.extract (r.getMajorIdx + 1) args.size))
          | none => mkAppN (.const c levels) args
        | none => mkAppN (.const c levels) args
    | some (.defnInfo d) =>
      -- How symbols are compared is replaced afterwards.
      if isKept env c || (c == ``BEq.beq && args[0]?.any (·.isConstOf `LeanGuard.Symbol)) then e
      else head env ((d.value.instantiateLevelParams d.levelParams levels).beta args)
    | _ => e
  | _ => e

/-- Unfolds at the head, and then in every part, also under binders and in types (which speak of the parts). Messages are left. -/
partial def unfold (env : Environment) (e : Expr) : Expr :=
  match head env e with
  | .lam n t b i => .lam n (unfold env t) (unfold env b) i
  | .forallE n t b i => .forallE n (unfold env t) (unfold env b) i
  | .letE n t v b d => .letE n (unfold env t) (unfold env v) (unfold env b) d
  | .proj s i b => .proj s i (unfold env b)
  | e@(.app ..) =>
    let args := e.getAppArgs
    match e.getAppFn with
    | .const c levels =>
      if c == `LeanGuard.EvalError.mk then e
      else mkAppN (.const c levels) (args.map (unfold env))
    | f => mkAppN (match f with | .proj s i b => .proj s i (unfold env b) | f => f) (args.map (unfold env))
  | e => e

/-- A formula as a tree of constructors, with its atoms unfolded. -/
partial def formula (env : Environment) (e : Expr) : Except Kernel.Exception Expr := do
  let e ← Kernel.whnf env {} e
  let args := e.getAppArgs
  match e.getAppFn with
  | .const ``Formula.atom _ => return mkAppN e.getAppFn #[args[0]!, unfold env args[1]!]
  | .const ``Formula.not _ => return mkAppN e.getAppFn #[← formula env args[0]!]
  | .const ``Formula.and _ | .const ``Formula.or _ => return mkAppN e.getAppFn #[← formula env args[0]!, ← formula env args[1]!]
  | .const ``Formula.previous _ | .const ``Formula.once _ | .const ``Formula.within _ =>
    return mkAppN e.getAppFn #[args[0]!, ← formula env args[1]!]
  | .const ``Formula.since _ => return mkAppN e.getAppFn #[args[0]!, ← formula env args[1]!, ← formula env args[2]!]
  | _ => return e

end LeanGuard.Specialize
