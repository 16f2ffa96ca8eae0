import Lean

/-!
# The audit's view of compiled modules

A program of its own: `main FILE` reads compiled modules *as data* and prints what they hold as one line of JSON. Nothing of the audited
package is imported or run; only Lean's core library is. What the facts mean, and which of them is a fault, is decided by
`leanguard_host/verify.py`.

FILE holds `{"nonce", "modules": [{"name", "parts": [OLEAN...], "policy"}], "core": [NAME...], "statements": [MODULE...]}`, modules in import
order. Every declaration of theirs is checked again by the kernel, from an environment that has only the core library in it.
-/

namespace LeanGuard.Audit

open Lean

/-! ## What was asked -/

structure Source where
  name : Name
  parts : Array System.FilePath
  policy : Bool

structure Request where
  nonce : String
  modules : Array Source
  /-- Folders of the core library; none for the toolchain's own. -/
  core : List System.FilePath
  statements : Array Name

def nameOf (text : String) : Name := (text.splitOn ".").foldl Name.str .anonymous

def Request.decode (j : Json) : Except String Request := do
  let texts (j : Json) (field : String) : Except String (Array String) := do
    (← j.getObjVal? field >>= Json.getArr?).mapM Json.getStr?
  return {
    nonce := ← j.getObjVal? "nonce" >>= Json.getStr?
    core := (← texts j "core").toList.map System.FilePath.mk
    statements := (← texts j "statements").map nameOf
    modules := ← (← j.getObjVal? "modules" >>= Json.getArr?).mapM fun m => do
      return {
        name := nameOf (← m.getObjVal? "name" >>= Json.getStr?)
        parts := (← texts m "parts").map System.FilePath.mk
        policy := ← m.getObjVal? "policy" >>= Json.getBool? } }

/-! ## Modules as data -/

structure Module where
  source : Source
  /-- The parts of the compiled file, the most complete one last. -/
  parts : Array ModuleData
  constants : Std.HashMap Name ConstantInfo
  /-- Names whose entry holds another constant than they say. -/
  misnamed : Array Name

def Module.imports (m : Module) : Array Name := m.parts.foldl (init := #[]) fun all d =>
  d.imports.foldl (init := all) fun all i => if all.contains i.module then all else all.push i.module

unsafe def Module.entriesAs (α : Type) (m : Module) (extension : Name) : Array α :=
  let found := m.parts.map fun d => ((d.entries.find? (·.1 == extension)).map (·.2)).getD #[]
  unsafeCast ((found.reverse.find? (!·.isEmpty)).getD #[])

/-- The entries that a module stores for an extension, read as the type that the extension exports. -/
@[implemented_by Module.entriesAs]
opaque Module.entries (α : Type) (m : Module) (extension : Name) : Array α

/-- The entries of an attribute that ties declarations to kinds of syntax. -/
def Module.keyed (m : Module) (extension : Name) : Array KeyedDeclsAttribute.OLeanEntry :=
  (m.entries (ScopedEnvExtension.Entry KeyedDeclsAttribute.OLeanEntry) extension).map fun
    | .global e => e
    | .scoped _ e => e

def Module.read (source : Source) : IO Module := do
  let parts := (← readModuleDataParts source.parts).map (·.1)
  let mut constants := {}
  let mut misnamed := #[]
  let some data := parts.back? | throw (IO.userError s!"{source.name} has no compiled file")
  for name in data.constNames, info in data.constants do
    if name != info.name then
      -- The portable builder lists names that only the code generator knows under another constant.
      unless data.extraConstNames.contains name do misnamed := misnamed.push name
    else constants := constants.insert name info
  return { source, parts, constants, misnamed }

/-! ## The kernel, again -/

structure Check where
  env : Kernel.Environment
  todo : Std.HashMap Name ConstantInfo
  seen : NameSet := {}
  /-- Rejected, or not checked since something that they use was rejected. -/
  failed : NameSet := {}
  errors : Array (Name × String) := #[]

abbrev CheckM := StateRefT Check IO

def reject (name : Name) (why : String) : CheckM Unit :=
  modify fun s => { s with failed := s.failed.insert name, errors := s.errors.push (name, why) }

def add (name : Name) (d : Declaration) : CheckM Unit := do
  match (← get).env.addDecl {} d with
  | .ok env => modify fun s => { s with env }
  | .error e => reject name (← (e.toMessageData {}).toString)

/-- Constructors and recursors are made by the kernel with their type: ours must be what it made. -/
def compare (name : Name) (info : ConstantInfo) : CheckM Unit := do
  let same := match (← get).env.find? name, info with
    | some (.ctorInfo a), .ctorInfo b => a == b
    | some (.recInfo a), .recInfo b => a == b
    | _, _ => false
  unless same do reject name "this is not what the kernel makes of its type"

/-- Whether two modules that declare a name mean the same by it: Lean itself makes some lemmas wherever they are first needed. -/
def sameFor (a b : ConstantInfo) : Bool :=
  a.levelParams == b.levelParams && a.type == b.type && match a, b with
    | .thmInfo _, .thmInfo _ => true
    | .defnInfo v, .defnInfo w => v.value == w.value && v.safety == w.safety
    | .inductInfo v, .inductInfo w => v.ctors == w.ctors && v.all == w.all && v.numParams == w.numParams
    | .ctorInfo v, .ctorInfo w => v == w
    | .recInfo v, .recInfo w => v == w
    | _, _ => false

partial def check (name : Name) : CheckM Unit := do
  let some info := (← get).todo[name]? | return
  if (← get).seen.contains name then return
  modify fun s => { s with seen := s.seen.insert name }
  -- The kernel knows nothing of these; a safe declaration that used one would be rejected.
  if info.isUnsafe || info.isPartial then return
  let uses := info.getUsedConstantsAsSet
  for used in uses do check used
  -- Another module's, which means the same; a lemma is then that one.
  if ((← get).env.find? name).any (sameFor · info) then return
  match info with
  | .ctorInfo v =>
    check v.induct
    return
  | .recInfo v =>
    for each in v.all do check each
    return
  | _ => pure ()
  if let some bad := uses.toList.find? (← get).failed.contains then
    unless bad == name do
      modify fun s => { s with failed := s.failed.insert name }
      return
  match info with
  | .defnInfo v => add name (.defnDecl v)
  | .thmInfo v => add name (.thmDecl v)
  | .axiomInfo v => add name (.axiomDecl v)
  | .opaqueInfo v => add name (.opaqueDecl v)
  | .quotInfo _ => add name .quotDecl
  | .inductInfo v =>
    let todo := (← get).todo
    let mut types : List InductiveType := []
    for each in v.all do
      modify fun s => { s with seen := s.seen.insert each }
      let some (.inductInfo w) := todo[each]? | reject name s!"{each}, declared with it, is missing"
      for used in (ConstantInfo.inductInfo w).getUsedConstantsAsSet do check used
      let mut constructors : List Constructor := []
      for c in w.ctors do
        let some (.ctorInfo ctor) := todo[c]? | reject name s!"its constructor {c} is missing"
        for used in (ConstantInfo.ctorInfo ctor).getUsedConstantsAsSet do check used
        constructors := constructors ++ [{ name := c, type := ctor.type }]
      types := types ++ [{ name := each, type := w.type, ctors := constructors }]
    add name (.inductDecl v.levelParams v.numParams types v.isUnsafe)
  | _ => pure ()

def checkModule (env : Kernel.Environment) (m : Module) : IO (Kernel.Environment × Array (Name × String)) := do
  let act : CheckM Unit := do
    for (name, _) in m.constants do check name
    for (name, info) in m.constants do
      if info matches .ctorInfo _ || info matches .recInfo _ then
        let failed := (← get).failed
        unless info.isUnsafe || (info.getUsedConstantsAsSet.toList.any failed.contains) do compare name info
  let ((), s) ← act.run { env, todo := m.constants }
  return (s.env, s.errors)

/-! ## What can mislead a reader of a policy -/

/-- The string literals that a parser description asks for. -/
partial def atoms (e : Expr) : Array String :=
  let text (e : Expr) : Array String := match e with
    | .lit (.strVal s) => #[s.trimAscii.toString]
    | _ => #[]
  let arguments := e.getAppArgs
  match e.getAppFn.constName? with
  | some ``ParserDescr.symbol | some ``ParserDescr.nonReservedSymbol | some ``ParserDescr.unicodeSymbol => arguments.flatMap text
  | _ => arguments.flatMap atoms

/-- Every word and sign that core syntax begins or continues with. -/
def coreTokens (env : Environment) : Std.HashSet String := Id.run do
  let mut found : Std.HashSet String := {}
  for (_, category) in (Parser.parserExtension.getState env).categories do
    for (key, _) in category.tables.leadingTable do found := found.insert key.toString
    for (key, _) in category.tables.trailingTable do found := found.insert key.toString
  return found

def isCoreToken (env : Environment) (tokens : Std.HashSet String) (s : String) : Bool :=
  tokens.contains s || ((Parser.getTokenTable env).find? s).isSome

/-- Ways to read a full name as `namespace.rest`, the whole name as well. -/
def splits (name : Name) : List (Name × Name) :=
  let parts := name.components
  (List.range parts.length).map fun i =>
    ((parts.take i).foldl (· ++ ·) .anonymous, (parts.drop i).foldl (· ++ ·) .anonymous)

/-- A field of a structure, that is, a definition that only projects. -/
partial def isField (structureName : Name) : Expr → Bool
  | .lam _ _ body _ => isField structureName body
  | .proj s _ _ => s == structureName
  | _ => false

/-! ## The report -/

structure Table where
  index : Std.HashMap Name Nat := {}
  names : Array Json := #[]

def Table.add (t : Table) (name : Name) : Nat × Table :=
  match t.index[name]? with
  | some i => (i, t)
  | none => (t.names.size, { index := t.index.insert name t.names.size, names := t.names.push (.str name.toString) })

def Table.addAll (t : Table) (names : Array Name) : Json × Table := Id.run do
  let mut t := t
  let mut ids := #[]
  for name in names do
    let (i, next) := t.add name
    ids := ids.push (toJson i)
    t := next
  return (.arr ids, t)

def nameJson (n : Name) : Json := .str n.toString

def kind : ConstantInfo → String
  | .axiomInfo _ => "axiom"
  | .defnInfo _ => "def"
  | .thmInfo _ => "theorem"
  | .opaqueInfo _ => "opaque"
  | .quotInfo _ => "quot"
  | .inductInfo _ => "inductive"
  | .ctorInfo _ => "constructor"
  | .recInfo _ => "recursor"

def constantJson (t : Table) (places : Std.HashMap Name DeclarationRanges) (info : ConstantInfo) : Json × Table :=
  let name := privateToUserName info.name
  let (id, t) := t.add info.name
  let (type, t) := t.addAll info.type.getUsedConstants
  let members := match info with
    | .inductInfo v => v.ctors.toArray
    | .ctorInfo v => #[v.induct]
    | .recInfo v => v.all.toArray
    | _ => #[]
  let value := match info.value? (allowOpaque := true) with
    | some value => value.getUsedConstants
    | none => #[]
  let (value, t) := t.addAll (value ++ members)
  let place := match places[info.name]? with
    | some r => #[toJson r.selectionRange.pos.line, toJson r.selectionRange.pos.column]
    | none => #[]
  let marks := (if info.isUnsafe then #["unsafe"] else #[]) ++ (if info.isPartial then #["partial"] else #[])
    ++ (if isPrivateName info.name then #["private"] else #[])
    ++ (if name.isInternalDetail || name.hasMacroScopes then #["internal"] else #[])
  (.mkObj [("name", toJson id), ("kind", kind info), ("type", type), ("value", value), ("place", .arr place), ("marks", toJson marks)], t)

/-- What a policy module declares that could be taken for something else. -/
def misleading (core : Environment) (tokens : Std.HashSet String) (known policies : NameSet) (classes : NameSet) (m : Module) : Json := Id.run do
  let mut shadows := #[]
  let mut syntaxes := #[]
  let mut instances := #[]
  let taken (name : Name) : Bool :=
    name != .anonymous && (core.contains name || (aliasExtension.getState core).contains name || known.contains (`LeanGuard ++ name))
  let types (ns : Name) : Bool := m.constants.contains ns || known.contains ns || core.contains ns
  let mut declared := m.entries AliasEntry ``aliasExtension |>.map (·.1)
  for (name, info) in m.constants do
    let shown := privateToUserName name
    if shown.isInternalDetail || shown.hasMacroScopes then continue
    let isProjection := match info with
      | .defnInfo v => isField shown.getPrefix v.value
      | _ => false
    let isSyntax := info.type.isConstOf ``ParserDescr || info.type.isConstOf ``TrailingParserDescr
    unless isProjection || isSyntax || info matches .ctorInfo _ || info matches .recInfo _ do declared := declared.push name
    if let some cls := info.type.getForallBody.getAppFn.constName? then
      if (classes.contains cls || isClass core cls) && info.type.getUsedConstants.all (!policies.contains ·) then
        instances := instances.push (.mkObj [("name", nameJson name), ("class", nameJson cls)])
  for name in declared do
    for (ns, rest) in splits (privateToUserName name) do
      -- Not the name itself, when it is LeanGuard's own and comes from somewhere else.
      if taken rest && !(ns != .anonymous && `LeanGuard ++ rest == privateToUserName name) then
        shadows := shadows.push (.mkObj [
          ("name", nameJson name), ("namespace", nameJson ns), ("taken", nameJson rest), ("type", types ns)])
  let kinds := m.constants.fold (init := #[]) fun all name info =>
    if info.type.isConstOf ``ParserDescr || info.type.isConstOf ``TrailingParserDescr then all.push (name, info) else all
  for (name, info) in kinds do
    let found := (info.value?.map atoms).getD #[]
    if found.all (isCoreToken core tokens) then
      syntaxes := syntaxes.push (.mkObj [("name", nameJson name), ("atoms", toJson found)])
  let own := kinds.foldl (init := ({} : NameSet)) fun s k => s.insert k.1
  let foreign := (m.keyed `Lean.Elab.macroAttribute).filter fun e => !own.contains e.key
  let elaborators := #[`Lean.Elab.Term.termElabAttribute, `Lean.Elab.Command.commandElabAttribute,
      `Lean.Elab.Tactic.tacticElabAttribute, `Lean.Elab.Do.doElemElabAttribute].foldl (init := #[]) fun all ext =>
    all ++ (m.keyed ext).map (·.declName)
  return .mkObj [
    ("shadows", .arr shadows), ("syntaxes", .arr syntaxes), ("instances", .arr instances),
    ("macros", .arr (foreign.map fun e => .mkObj [("name", nameJson e.declName), ("kind", nameJson e.key)])),
    ("elaborators", .arr (elaborators.map nameJson)),
    ("initializers", .arr ((m.entries (Name × Name) `Lean.regularInitAttr).map fun e => nameJson e.1)),
    ("exports", .arr ((m.entries (Name × Name) `Lean.exportAttr).map fun e => nameJson e.1))]

/-- A statement written out in full: every implicit argument, instance and level; binders by number, so that their names don't matter. -/
partial def explicit (levels : List Name) (e : Expr) : String :=
  let level (u : Level) : String :=
    toString ((u.instantiateParams levels ((List.range levels.length).map fun i => .param (.num .anonymous i))))
  match e with
  | .bvar i => s!"#{i}"
  | .const n us => s!"({n} {" ".intercalate (us.map level)})"
  | .app f a => s!"({explicit levels f} {explicit levels a})"
  | .lam _ t b i => s!"(fun {repr i} {explicit levels t} {explicit levels b})"
  | .forallE _ t b i => s!"(all {repr i} {explicit levels t} {explicit levels b})"
  | .letE _ t v b _ => s!"(let {explicit levels t} {explicit levels v} {explicit levels b})"
  | .lit (.natVal n) => toString n
  | .lit (.strVal s) => s.quote
  | .mdata _ e => explicit levels e
  | .proj s i e => s!"(proj {s} {i} {explicit levels e})"
  | .sort u => s!"(sort {level u})"
  | .fvar _ | .mvar _ => "?"

/-- An environment for printing: the core library's notations, and the names and types of the modules, unchecked. -/
def forPrinting (core : Environment) (modules : Array Module) : Environment := Id.run do
  let mut env := core
  for m in modules do
    for (name, info) in m.constants do
      unless info.isUnsafe || info.isPartial || env.contains name do
        if let .ok next := env.addDeclCore 0 (.axiomDecl { info.toConstantVal with isUnsafe := false }) none (doCheck := false) then
          env := next
  return env

def readable (env : Environment) (name : Name) : IO String := do
  let options := Options.empty |>.set `pp.fullNames true |>.set `pp.funBinderTypes true |>.set `pp.deepTerms true
    |>.set `pp.maxSteps 1000000 |>.set `pp.proofs true
  let ctx : Core.Context := { fileName := "", fileMap := default, options, maxHeartbeats := 0, maxRecDepth := 10000 }
  let (shown, _) ← ((PrettyPrinter.ppSignature name).run' {} {}).toIO ctx { env }
  return shown.fmt.pretty 110

/-! ## Axioms in the core library -/

/-- All axioms that the core constants rest on, with a way from each of the constants to each axiom that is not in `expected`. -/
def coreAxioms (core : Environment) (roots : Array Name) (proofs : Bool) (expected bad : NameSet) : Json := Id.run do
  let mut seen : NameSet := {}
  let mut stack := roots
  let mut users : Std.HashMap Name (Array Name) := {}
  let mut found : NameSet := {}
  while !stack.isEmpty do
    let name := stack.back!
    stack := stack.pop
    if seen.contains name then continue
    seen := seen.insert name
    let some info := core.find? name | continue
    if info matches .axiomInfo _ then
      -- Without the proofs, every theorem looks like an axiom: then only names tell.
      if proofs || expected.contains name || bad.contains name then found := found.insert name
    for used in info.getUsedConstantsAsSet do
      users := users.alter used fun all => some ((all.getD #[]).push name)
      unless seen.contains used do stack := stack.push used
  let isRoot := roots.foldl (init := ({} : NameSet)) fun s r => s.insert r
  let mut paths := #[]
  for ax in found do
    if expected.contains ax then continue
    let mut next : NameMap Name := {}
    let mut reached : NameSet := ({} : NameSet).insert ax
    let mut front := #[ax]
    while !front.isEmpty do
      let mut after := #[]
      for name in front do
        for user in users.getD name #[] do
          unless reached.contains user do
            reached := reached.insert user
            next := next.insert user name
            after := after.push user
      front := after
    for name in reached do
      if isRoot.contains name then
        let mut path := #[nameJson name]
        let mut at_ := name
        while at_ != ax do
          at_ := (next.find? at_).getD ax
          path := path.push (nameJson at_)
        paths := paths.push (.arr path)
  return .mkObj [("axioms", .arr (found.toArray.map nameJson)), ("paths", .arr paths)]

/-! ## The program -/

def coreImports (modules : Array Module) : Array Import := Id.run do
  let own := modules.foldl (init := ({} : NameSet)) fun s m => s.insert m.source.name
  let mut wanted := #[`Init, `Std, `Lean]
  for m in modules do
    for i in m.imports do
      -- Lake is no part of the core library that proofs may rest on.
      unless own.contains i || wanted.contains i || i.getRoot == `Lake do wanted := wanted.push i
  return wanted.map fun name => { module := name }

/-- The modules that a module imports, directly or through others, in import order, with itself. -/
def closure (modules : Array Module) (m : Module) : Array Module := Id.run do
  let mut names : NameSet := ({} : NameSet).insert m.source.name
  for each in modules.reverse do
    if names.contains each.source.name then
      for i in each.imports do names := names.insert i
  return modules.filter fun each => names.contains each.source.name

def report (r : Request) : IO Json := do
  let started ← IO.monoMsNow
  let modules ← r.modules.mapM Module.read
  if r.core.isEmpty then initSearchPath (← findSysroot) else searchPathRef.set r.core
  let core ← importModules (coreImports modules) {} (trustLevel := 0) (loadExts := true)
  let imported ← IO.monoMsNow
  -- The kernel. Modules that nothing imports together may declare the same name; then each is checked without the other.
  let mut env := core.toKernelEnv
  let mut errors : Std.HashMap Name (Array (Name × String)) := {}
  for m in modules do
    let apart := m.constants.any fun name info => (env.find? name).any (!sameFor · info)
    let mut base := env
    if apart then
      base := core.toKernelEnv
      for each in closure modules m do
        unless each.source.name == m.source.name do base := (← checkModule base each).1
    let (after, found) ← checkModule base m
    unless apart do env := after
    errors := errors.insert m.source.name found
  let checked ← IO.monoMsNow
  let tokens := coreTokens core
  let mut known : NameSet := {}
  let mut policies : NameSet := {}
  let mut classes : NameSet := {}
  for m in modules do
    for c in m.entries ClassEntry ``classExtension do classes := classes.insert c.name
    for (name, _) in m.constants do
      if m.source.policy then policies := policies.insert name else known := known.insert name
  let printing := if r.statements.isEmpty then core else forPrinting core modules
  let mut table : Table := {}
  let mut answers := #[]
  let mut statements := #[]
  let mut roots : NameSet := {}
  for m in modules do
    let places := (m.entries (Name × DeclarationRanges) ``declRangeExt).foldl (init := {}) fun s (n, r) => s.insert n r
    let mut constants := #[]
    for (_, info) in m.constants do
      let (json, next) := constantJson table places info
      table := next
      constants := constants.push json
      for used in info.getUsedConstantsAsSet do
        if core.contains used then roots := roots.insert used
      if r.statements.contains m.source.name && info matches .thmInfo _ then
        unless info.name.isInternalDetail do
          statements := statements.push (.mkObj [
            ("name", nameJson info.name), ("text", ← readable printing info.name), ("explicit", explicit info.levelParams info.type)])
    answers := answers.push (.mkObj [
      ("name", nameJson m.source.name), ("imports", .arr (m.imports.map nameJson)), ("constants", .arr constants),
      ("rejected", .arr (errors.getD m.source.name #[] |>.map fun (n, why) => .mkObj [("name", nameJson n), ("why", why)])),
      ("misnamed", .arr (m.misnamed.map nameJson)),
      ("implemented_by", .arr ((m.entries (Name × Name) `Lean.Compiler.implementedByAttr).map fun (a, b) => .arr #[nameJson a, nameJson b])),
      ("extern", .arr ((m.entries (Name × Nat) `Lean.externAttr).map fun e => nameJson e.1)),
      ("policy", if m.source.policy then misleading core tokens known policies classes m else .null)])
  let expected := [``propext, ``Quot.sound, ``Classical.choice].foldl (init := ({} : NameSet)) NameSet.insert
  let bad := [``sorryAx, `Lean.ofReduceBool, `Lean.ofReduceNat, `Lean.trustCompiler].foldl (init := ({} : NameSet)) NameSet.insert
  -- Known to be a theorem: whether it looks like one tells whether this toolchain ships the core library's proofs.
  let proofs := (core.find? ``Nat.add_comm).any (· matches .thmInfo _)
  let coreFacts := coreAxioms core roots.toArray proofs expected bad
  let finished ← IO.monoMsNow
  return .mkObj [
    ("leanguard_audit", (1 : Nat)), ("nonce", r.nonce), ("lean", Lean.versionString), ("core_proofs", proofs),
    ("core", coreFacts), ("statements", .arr statements), ("modules", .arr answers), ("names", .arr table.names),
    ("ms", .mkObj [("import", toJson (imported - started)), ("kernel", toJson (checked - imported)), ("facts", toJson (finished - checked))])]

def run (file : String) : IO UInt32 := do
  let answer ← try
      report (← IO.ofExcept (Json.parse (← IO.FS.readFile file) >>= Request.decode))
    catch e => pure (.mkObj [("leanguard_audit", (1 : Nat)), ("error", toString e)])
  -- A marked line: on the portable toolchain, standard output is shared with others.
  let stdout ← IO.getStdout
  stdout.putStr ("\x1e" ++ answer.compress ++ "\n")
  stdout.flush
  return 0

unsafe def start (arguments : List String) : IO UInt32 := do
  enableInitializersExecution
  match arguments with
  | [file] => run file
  | _ => throw (IO.userError "usage: audit REQUEST.json")

@[implemented_by start]
opaque startSafely (arguments : List String) : IO UInt32

end LeanGuard.Audit

def main (arguments : List String) : IO UInt32 := LeanGuard.Audit.startSafely arguments
