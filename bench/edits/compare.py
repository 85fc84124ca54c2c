#!/usr/bin/env python3
"""Runs other ways to apply an edit on corpus.jsonl, beside the engine's own score.

    python3 bench/edits/compare.py [--codex PATH] [--node-modules PATH]

exact      replaces the old text when it is in the file exactly once (structured, JSON, XML)
similar    the most similar stretch of lines, if at least 80 % the same (difflib), else refused
git        git apply --recount; patch: GNU patch with its default fuzz (diffs)
codex      the apply_patch of the Codex command line, when --codex names its binary (envelopes, and edits of whole
           lines rewritten as hunks)
jsdiff     applyPatch of the npm package `diff`, fuzzFactor 2, when --node-modules names the folder that has it (diffs)

Of the Python packages that can be imported:
aider      do_replace of aider-chat, which needs `packaging` alone of its dependencies (blocks, structured, JSON, XML)
dmp        diff-match-patch: a patch from old to new text, found and applied (structured, JSON, XML)
whatthe    whatthepatch, and patch_ng: patch-ng (diffs)

A case counts for a tool only when the tool reads its dialect. Every refusal counts as right where the right outcome is a
refusal, whatever its reason.
"""

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
import types


def content(value):
    return value.encode() if isinstance(value, str) else value["latin1"].encode("latin1")


def files_of(case):
    if "files" in case:
        return {path: content(value) for path, value in case["files"].items()}
    return {} if case["original"] is None else {case["path"]: content(case["original"])}


def right_files(case):
    if "code" in case["right"]:
        return None
    if "files" in case["right"]:
        return {path: content(value) for path, value in case["right"]["files"].items()}
    start, end, text = case["right"]["replace"]
    before = files_of(case).get(case["path"], b"")
    return {case["path"]: before[:start] + content(text) + before[end:]}


def pairs(case):
    """Old and new texts of an input that is strict JSON or XML."""
    text = case.get("input", "")
    if "<old_text" in text and text.count("<new_text>") == 1 and "</new_text>" in text:
        inside = lambda tag: text.split("<" + tag, 1)[1].split(">", 1)[1].split("</" + tag)[0].removeprefix("\n").removesuffix("\n")
        return [(inside("old_text"), inside("new_text"))]
    try:
        value = json.loads(text)
    except ValueError:
        return None
    edits = value.get("edits") if isinstance(value, dict) and "edits" in value else value if isinstance(value, list) else [value]
    old = lambda edit: edit.get("old", edit.get("search", edit.get("old_string")))
    new = lambda edit: edit.get("new", edit.get("replace", edit.get("new_string")))
    if any("all" in edit or "near_line" in edit for edit in edits):
        return None
    return [(old(edit), new(edit)) for edit in edits]


def exact(case):
    found = None if case["category"] == "unclear" else pairs(case)
    if found is None or case.get("original") is None:
        return "other"
    after = files_of(case)[case["path"]]
    for old, new in found:
        if not old or old == new or after.count(old.encode()) != 1:
            return None
        after = after.replace(old.encode(), new.encode())
    return {case["path"]: after}


def similar(case):
    found = None if case["category"] == "unclear" else pairs(case)
    if found is None or case.get("original") is None:
        return "other"
    try:
        text = files_of(case)[case["path"]].decode()
    except UnicodeDecodeError:
        return None
    for old, new in found:
        lines, wanted = text.split("\n"), old.removesuffix("\n").split("\n")
        matcher = difflib.SequenceMatcher(autojunk=False)
        matcher.set_seq2("\n".join(wanted))
        best = (0.0, 0)
        for at in range(len(lines) - len(wanted) + 1):
            matcher.set_seq1("\n".join(lines[at:at + len(wanted)]))
            if matcher.real_quick_ratio() > best[0] and matcher.quick_ratio() > best[0]:
                best = max(best, (matcher.ratio(), -at))
        if best[0] < 0.8:
            return None
        at = -best[1]
        text = "\n".join(lines[:at] + new.removesuffix("\n").split("\n") + lines[at + len(wanted):])
    return {case["path"]: text.encode()}


def in_folder(case, run):
    """What a program makes of the files; None when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        for path, data in files_of(case).items():
            os.makedirs(os.path.dirname(os.path.join(folder, path)) or folder, exist_ok=True)
            with open(os.path.join(folder, path), "wb") as file:
                file.write(data)
        done = run(folder)
        after = {}
        for root, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(root, name)
                with open(path, "rb") as file:
                    after[os.path.relpath(path, folder)] = file.read()
        after = {path: data for path, data in after.items() if not path.endswith((".orig", ".rej"))}
        if done.returncode != 0 and after == files_of(case):
            return None
        return after


def diff_of(case):
    text = case.get("patch", case.get("input", ""))
    return text if "\n@@" in "\n" + text and "*** Begin Patch" not in text and "<<<<" not in text and "<old_text" not in text else None


def program(*command):
    def apply(case):
        diff = diff_of(case)
        if diff is None:
            return "other"
        return in_folder(case, lambda folder: subprocess.run(command, cwd=folder, input=diff.encode(), capture_output=True))
    return apply


def envelope_of(case):
    text = case.get("patch", case.get("input", ""))
    if "*** Begin Patch" in text:
        return text
    found = pairs(case)
    if found is None or case.get("original") is None or any("\r" in old or not old for old, _ in found):
        return None
    if case["category"] == "unclear":
        return None
    lines = set(files_of(case)[case["path"]].decode("latin1").replace("\r\n", "\n").split("\n"))
    hunks = ""
    for old, new in found:
        if old.endswith("\n") and (new.endswith("\n") or not new):
            old, new = old[:-1], new[:-1] if new else None
        old, new = old.split("\n"), [] if new is None else new.split("\n")
        if case["category"] == "exact" and not set(old) <= lines:
            return None
        hunks += "@@\n" + "".join(f"-{line}\n" for line in old) + "".join(f"+{line}\n" for line in new)
    return f"*** Begin Patch\n*** Update File: {case['path']}\n{hunks}*** End Patch\n"


def codex(binary):
    def apply(case):
        text = envelope_of(case)
        if text is None:
            return "other"
        command = [binary, "--codex-run-as-apply-patch", text]
        return in_folder(case, lambda folder: subprocess.run(command, cwd=folder, capture_output=True))
    return apply


JSDIFF = """
const {applyPatch} = require(process.argv[1] + "/diff"), fs = require("fs");
const [path, diff] = [process.argv[2], fs.readFileSync(0, "latin1")];
let after = false;
try { after = applyPatch(fs.readFileSync(path, "latin1"), diff, {fuzzFactor: 2}); } catch {}
if (after === false) process.exit(1);
fs.writeFileSync(path, after, "latin1");
"""


def jsdiff(modules):
    def apply(case):
        diff = diff_of(case)
        if diff is None or "files" in case or case["original"] is None:
            return "other"
        command = ["node", "-e", JSDIFF, os.path.abspath(modules), case["path"]]
        # Bytes stand for themselves on both sides.
        return in_folder(case, lambda folder: subprocess.run(command, cwd=folder, input=diff.encode(), capture_output=True))
    return apply


def aider():
    # Only the matcher is wanted: what it imports for talking to a model stays away.
    for name, names in {"aider.utils": [], "aider.dump": ["dump"], "aider.coders": [], "aider.coders.base_coder": ["Coder"],
                        "aider.coders.editblock_prompts": ["EditBlockPrompts"]}.items():
        module = sys.modules[name] = types.ModuleType(name)
        for each in names:
            setattr(module, each, type(each, (), {}))
    import aider
    aider.utils = sys.modules["aider.utils"]
    sys.modules["aider.coders"].__path__ = [os.path.join(os.path.dirname(aider.__file__), "coders")]
    from aider.coders import editblock_coder as engine

    def apply(case):
        if case.get("original") is None or case["category"] == "unclear":
            return "other"
        found, fence = pairs(case), ("```", "```")
        if found is None and "<<<<<<< SEARCH" not in case["input"]:
            return "other"
        try:
            text = files_of(case)[case["path"]].decode()
            if found is None:
                blocks = engine.find_original_update_blocks(case["path"] + "\n" + case["input"], fence, [case["path"]])
                found = [(old, new) for _, old, new in blocks]
            for old, new in found:
                text = engine.do_replace(case["path"], text, old, new, fence)
                if not text:
                    return None
        except (ValueError, TypeError):
            return None
        return {case["path"]: text.encode()}
    return apply


def dmp():
    from diff_match_patch import diff_match_patch

    def apply(case):
        found = None if case["category"] == "unclear" else pairs(case)
        if found is None or case.get("original") is None:
            return "other"
        engine = diff_match_patch()
        engine.Match_Distance = 10 ** 9
        try:
            text = files_of(case)[case["path"]].decode()
        except UnicodeDecodeError:
            return None
        for old, new in found:
            after, applied = engine.patch_apply(engine.patch_make(old, new), text)
            if not applied or not all(applied):
                return None
            text = after
        return {case["path"]: text.encode()}
    return apply


def whatthe():
    import whatthepatch

    def apply(case):
        diff = diff_of(case)
        if diff is None or "files" in case or case["original"] is None:
            return "other"
        text = files_of(case)[case["path"]].decode("latin1")
        try:
            parsed = list(whatthepatch.parse_patch(diff))
            lines = whatthepatch.apply_diff(parsed[0], text) if len(parsed) == 1 else None
        except Exception:
            return None
        if lines is None:
            return None
        # It works on lines, and says nothing of the last one's end.
        return {case["path"]: ("\n".join(lines) + ("\n" if text.endswith("\n") else "")).encode("latin1")}
    return apply


def patch_ng():
    import logging

    import patch_ng as engine
    logging.disable()

    def apply(case):
        diff = diff_of(case)
        if diff is None:
            return "other"

        def run(folder):
            try:
                patch = engine.fromstring(diff.encode())
                done = bool(patch) and patch.apply(strip=1, root=folder, fuzz=True)
            except Exception:
                done = False
            return types.SimpleNamespace(returncode=0 if done else 1)
        return in_folder(case, run)
    return apply


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--codex")
    parser.add_argument("--node-modules")
    options = parser.parse_args()
    tools = {"exact": exact, "similar": similar, "git": program("git", "apply", "--recount", "-"), "patch": program("patch", "-p1", "-s", "-f")}
    if options.codex:
        tools["codex"] = codex(options.codex)
    if options.node_modules:
        tools["jsdiff"] = jsdiff(options.node_modules)
    for each in (aider, dmp, whatthe, patch_ng):
        try:
            tools[each.__name__] = each()
        except ImportError:
            pass
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus.jsonl"), encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    print(f"{'tool':<8} {'cases':>6} {'right':>6} {'refused':>8} {'wrong':>6}")
    for name, tool in tools.items():
        score = {"right": 0, "refused": 0, "wrong": 0}
        for case in cases:
            after = tool(case)
            if after == "other":
                continue
            right = right_files(case)
            score["right" if after == right else "refused" if after is None else "wrong"] += 1
        print(f"{name:<8} {sum(score.values()):>6} {score['right']:>6} {score['refused']:>8} {score['wrong']:>6}")


if __name__ == "__main__":
    main()
