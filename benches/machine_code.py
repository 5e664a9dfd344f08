"""What the machine code of kernels is made of: python3 benches/machine_code.py ARCHITECTURE OUT.json LAUNCHES.json …

LAUNCHES.json is what `rayspin-ladder counters --launches` writes: it holds the programs. They are compiled by NVRTC
for ARCHITECTURE (sm_90a) and taken apart by nvdisasm; both come from `pip install nvidia-cuda-nvrtc
nvidia-cuda-nvdisasm` (LD_LIBRARY_PATH and NVDISASM name their places). Per program and kernel: instructions, those
under a predicate, branches, votes, and loads and stores by memory and width. ncu_table.py explains differences with it.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile


def cubin(nvrtc, text, options):
    """Machine code, or nothing where NVRTC refuses the program."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    if nvrtc.nvrtcCompileProgram(program, len(options), words):
        return None
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


CONTROL = ("BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "BREAK", "RET", "CALL", "BRX", "YIELD", "NANOSLEEP")


def facts(assembly):
    """For each kernel the numbers of its instructions."""
    kernels, present = {}, None
    for line in assembly.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line)
        if section:
            present = kernels.setdefault(
                section[1], {"instructions": 0, "predicated": 0, "branches": 0, "uniform": 0, "memory": {}}
            )
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P\d+\s+)?([A-Z0-9_.]+)", line)
        if not found or present is None:
            continue
        name = found[2].split(".")
        if name[0] == "NOP":
            continue
        present["instructions"] += 1
        present["branches"] += name[0] in ("BRA", "BRX")
        # Once for a warp, whatever its lanes do.
        present["uniform"] += name[0].startswith("U") and name[0] != "UNPACK"
        present["predicated"] += bool(found[1]) and name[0] not in CONTROL
        if name[0] in ("LDG", "STG", "LDS", "STS", "LDL", "STL", "LDC", "ATOMG", "REDG", "RED", "ATOMS", "TEX", "TLD", "LD", "ST",
                       "VOTE", "VOTEU"):
            width = next((part for part in name if part in ("U8", "S8", "U16", "S16", "64", "128")), "32")
            key = f"{name[0].removesuffix('U')}.{width}"
            present["memory"][key] = present["memory"].get(key, 0) + 1
    return kernels


def main(architecture, out, *files):
    nvrtc, told = ctypes.CDLL(os.environ.get("NVRTC", "libnvrtc.so.13")), []
    known = {}
    for file in files:
        for ladder in json.load(open(file)):
            for number, program in enumerate(ladder["programs"]):
                key = json.dumps([program["options"], program["text"]])
                if key not in known:
                    options = program["options"] + [
                        f"--gpu-architecture={architecture}", "--std=c++17", "--device-as-default-execution-space",
                    ]
                    code, kernels = cubin(nvrtc, program["text"], options), {}
                    if code:
                        with tempfile.NamedTemporaryFile(suffix=".cubin") as kept:
                            kept.write(code)
                            kept.flush()
                            words = [os.environ.get("NVDISASM", "nvdisasm"), "-c", kept.name]
                            kernels = facts(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
                    known[key] = kernels
                told.append({"ladder": ladder["ladder"], "program": program["name"], "number": number, "kernels": known[key]})
    json.dump(told, open(out, "w"), indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
