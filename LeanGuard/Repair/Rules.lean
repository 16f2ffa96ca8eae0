import Lean

/-!
# `@[guard_rule]`

Policy authors register proved facts with `@[guard_rule]`; `guard_solve` uses them; `#guard_rules` lists them. What is registered must be a
theorem, and one that `grind` can use: a plain fact, or one whose conclusion or hypotheses tell where to instantiate it. Anything else is an
error at its line.
-/

namespace LeanGuard.GuardRule

open Lean Meta Elab

/-- The registered facts, in order of registration. -/
initialize extension : SimplePersistentEnvExtension Name (Array Name) ←
  registerSimplePersistentEnvExtension {
    addEntryFn := Array.push
    addImportedFn := fun imported => imported.foldl (init := #[]) (· ++ ·) }

/-- The facts that are registered in an environment. -/
def names (env : Environment) : Array Name := extension.getState env

/-- Refuses what is not a theorem, and a theorem that could never be used. -/
def check (declName : Name) : MetaM Unit := do
  let info ← getAsyncConstInfo declName
  unless info.kind == .thm do
    throwError "`{.ofConstName declName}` is not a theorem: only proved facts can be registered with `@[guard_rule]`"
  let type := info.sig.get.type
  if type.hasSorry then throwError "the statement of `{.ofConstName declName}` is not complete"
  if type.isForall then
    try discard <| Grind.mkEMatchTheoremForDecl declName (.default false) (← Grind.getGlobalSymbolPriorities)
    catch e => throwError "`{.ofConstName declName}` can't be used: nothing in it tells where to instantiate it\n{e.toMessageData}"

initialize registerBuiltinAttribute {
  name := `guard_rule
  descr := "a proved fact that `guard_solve` may use"
  add := fun declName stx kind => do
    Attribute.Builtin.ensureNoArgs stx
    unless kind == .global do throwError "`@[guard_rule]` is global: it can't be local or scoped"
    (check declName).run'
    modifyEnv (extension.addEntry · declName) }

/-- Lists the facts that are registered with `@[guard_rule]`. -/
elab "#guard_rules" : command => do
  let all := names (← getEnv)
  if all.isEmpty then logInfo "no fact is registered with `@[guard_rule]`"
  else
    let lines ← Command.liftTermElabM <| all.mapM fun n => return m!"{.ofConstName n} : {(← getConstInfo n).type}"
    logInfo (MessageData.joinSep lines.toList "\n")

end LeanGuard.GuardRule
