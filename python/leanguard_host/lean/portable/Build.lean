module
public import Lean

/-!
The portable toolchain's builder: compiles modules, one request a line on stdin, one answer each.

A request is `{"module", "source", "shown", "path", "olean", "keep"}`: the module's name, its source text, the file name to show in
messages, the folders to search for imported modules, where to write the compiled module ("": only check), and a key under which the
imported environment is kept for the next request ("": not). An answer is `{"ok", "messages", "import_ms", "ms"}`, or `{"ok", "crash"}`. Answers are framed as `boot.js` describes.
-/

open Lean Elab

/-- One message as JSON, with its place. Lines count from 1, columns from 0. -/
def messageJson (file : String) (m : Message) : IO Json := do
  let severity := match m.severity with
    | .information => "info"
    | .warning => "warning"
    | .error => "error"
  let text ← m.data.toString
  return Json.mkObj [("severity", severity), ("file", file), ("line", m.pos.line), ("column", m.pos.column),
    ("endLine", toJson (m.endPos.map (·.line))), ("endColumn", toJson (m.endPos.map (·.column))), ("data", text.trimAsciiEnd.toString)]

/-- The module with the names that only the code generator knows listed as aliases of a constant of the same module,
since this Lean's import does not enter `extraConstNames` into its map from constants to modules. -/
def withExtraNames (d : ModuleData) : ModuleData :=
  let known := d.constNames.foldl (fun (s : NameSet) n => s.insert n) {}
  let missing := d.extraConstNames.filter (!known.contains ·)
  let partner := d.constants.find? (fun c => c matches .defnInfo _) <|> d.constants.find? (fun c => c matches .thmInfo _)
    <|> d.constants[0]?
  match partner with
  | some c => { d with constNames := d.constNames ++ missing, constants := d.constants ++ missing.map (fun _ => c) }
  | none => d

/-- What to compile. -/
structure Request where
  module : String
  source : String
  shown : String
  path : List String
  olean : String
  keep : String

/-- Decoded by hand: deriving it would double the time that this file takes to compile. -/
def Request.decode (j : Json) : Except String Request := do
  let text (name : String) := j.getObjVal? name >>= Json.getStr?
  let path ← j.getObjVal? "path" >>= Json.getArr?
  return {
    module := ← text "module", source := ← text "source", shown := ← text "shown", olean := ← text "olean", keep := ← text "keep"
    path := (← path.mapM Json.getStr?).toList }

/-- An environment kept for the next request with the same key. -/
structure Kept where
  key : String
  env : Environment

unsafe def compile (kept : IO.Ref (Option Kept)) (r : Request) : IO Json := do
  let start ← IO.monoMsNow
  let input := Parser.mkInputContext r.source r.shown
  let (header, parserState, messages) ← Parser.parseHeader input
  let answer (ok : Bool) (messages : MessageLog) (imported : Nat) : IO Json := do
    return Json.mkObj [("ok", ok), ("import_ms", imported - start), ("ms", (← IO.monoMsNow) - start),
      ("messages", toJson (← messages.toList.mapM (messageJson r.shown)))]
  if messages.hasErrors then
    return ← answer false messages start
  -- Every module is written whole and imported whole.
  let imports := headerToImports header |>.map fun i => { i with importAll := false, isMeta := false }
  let options := KVMap.empty |>.setBool `compiler.extract_closed false |>.setBool `Elab.async false
  let mut env? := none
  if let some k ← kept.get then
    if r.keep == k.key then
      env? := some k.env
    else
      kept.set none
  let env ← match env? with
    | some env => pure env
    | none =>
      searchPathRef.set (r.path.map System.FilePath.mk)
      try
        importModules imports {} (trustLevel := 1024) (loadExts := true)
      catch e =>
        let message := { fileName := r.shown, severity := .error, pos := ⟨1, 0⟩, data := e.toString }
        return ← answer false (messages.add message) (← IO.monoMsNow)
  let imported ← IO.monoMsNow
  let state ← IO.processCommands input parserState (Command.mkState (env.setMainModule r.module.toName) messages options)
  let messages := state.commandState.messages
  unless r.olean.isEmpty || messages.hasErrors do
    saveModuleData (r.olean ++ ".new") r.module.toName (withExtraNames (← mkModuleData state.commandState.env .private))
    IO.FS.rename (r.olean ++ ".new") r.olean
  let json ← answer (!messages.hasErrors) messages imported
  -- The memory of an imported environment is never freed: what still points into it would get into the next module. A process that has
  -- taken too much is replaced by a new one.
  unless r.keep.isEmpty do
    kept.set (some { key := r.keep, env })
  return json

def answerLine (json : Json) : IO Unit := do
  let stdout ← IO.getStdout
  stdout.putStr ("\u001e" ++ (match json with | .str s => s | j => j.compress) ++ "\n")
  stdout.flush

unsafe def loop : IO Unit := do
  enableInitializersExecution
  let stdin ← IO.getStdin
  let kept ← IO.mkRef none
  answerLine (Json.mkObj [("ready", true)])
  repeat
    let line ← stdin.getLine
    if line.isEmpty then break
    try
      answerLine (← compile kept (← IO.ofExcept (Json.parse line >>= Request.decode)))
    catch e =>
      answerLine (Json.mkObj [("ok", false), ("crash", toString e)])

@[implemented_by loop] opaque safeLoop : IO Unit

public def main (_ : List String) : IO Unit := safeLoop
