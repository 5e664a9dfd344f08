"""CT scans in HDF5 files as other programs lay them out: links, virtual data sets, filters, attributes and entries of every kind."""

import os
import pathlib
import sys

import h5py
import numpy as np

VIEWS, ROWS, COLUMNS = 6, 2, 5
LINES = (1 + np.arange(VIEWS * ROWS * COLUMNS, dtype=np.float32)).reshape(VIEWS, ROWS, COLUMNS)
DEGREES = 30.0 * np.arange(VIEWS)


def exchange(file):
    """A group with angles, and the place where the projections go."""
    group = file.require_group("exchange")
    group["theta"] = DEGREES
    return group


def described(data):
    data.attrs["description"] = "line integrals"
    return data


def links(folder):
    (folder / "raw").mkdir()
    with h5py.File(folder / "raw/raw.h5", "w") as file:
        described(file.create_dataset("entry/data", data=LINES))
    with h5py.File(folder / "raw/block.h5", "w", userblock_size=1024) as file:
        described(file.create_dataset("entry/data", data=LINES))
        exchange(file)["data"] = LINES
        described(file["exchange/data"])
    for name, target in [("linked", "raw/raw.h5"), ("linked_block", "raw/block.h5"), ("missing_link", "raw/none.h5")]:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["preview"] = -LINES
            exchange(file)["data"] = h5py.ExternalLink(target, "/entry/data")
    with h5py.File(folder / "soft.h5", "w") as file:
        file["preview"] = -LINES
        file["raw"] = h5py.ExternalLink("raw/raw.h5", "/entry")
        exchange(file)["data"] = h5py.SoftLink("/raw/data")
    for name, target in [("group", "raw/block.h5"), ("missing_group", "raw/none.h5")]:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["exchange"] = h5py.ExternalLink(target, "/exchange")
    with h5py.File(folder / "missing_entry.nxs", "w") as file:
        file["entry"] = h5py.ExternalLink("raw/none.h5", "/entry")


def virtual(folder):
    for part in range(2):
        with h5py.File(folder / f"raw/part{part}.h5", "w") as file:
            file["data"] = LINES[3 * part : 3 * part + 3]
    for name, other in [("virtual", ""), ("missing_part", "x"), ("missing_pattern", "x%%")]:
        layout = h5py.VirtualLayout((VIEWS, ROWS, COLUMNS), "f4")
        for part in range(2):
            source_of = f"raw/part{part}{other if part else ''}.h5"
            layout[3 * part : 3 * part + 3] = h5py.VirtualSource(source_of, "data", (3, ROWS, COLUMNS))
        with h5py.File(folder / f"{name}.h5", "w") as file:
            described(exchange(file).create_virtual_dataset("data", layout))
    layout = h5py.VirtualLayout((VIEWS, ROWS, COLUMNS), "f4")
    layout[:] = h5py.VirtualSource(".", "kept/data", (VIEWS, ROWS, COLUMNS))
    with h5py.File(folder / "virtual_self.h5", "w") as file:
        file["kept/data"] = LINES
        described(exchange(file).create_virtual_dataset("data", layout))
    virtual_kinds(folder)


def made_of(path, parts, shape=(VIEWS, ROWS, COLUMNS), **how):
    """A scan whose projections are made of parts: where they go, a file, a data set and its shape."""
    layout = h5py.VirtualLayout(shape, "f4")
    for at, file, name, size in parts:
        layout[at] = h5py.VirtualSource(file, name, size)
    with h5py.File(path, "w", **how) as file:
        described(exchange(file).create_virtual_dataset("data", layout))


def endless(path, source, patterns=False):
    """A scan whose number of views its files tell: one file that may grow, or a file of 3 views for each block."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    none = h5py.h5s.UNLIMITED
    place = h5py.h5s.create_simple((VIEWS, ROWS, COLUMNS), (none, ROWS, COLUMNS))
    size = (3 if patterns else VIEWS, ROWS, COLUMNS)
    of = h5py.h5s.create_simple(size, None if patterns else (none, ROWS, COLUMNS))
    if patterns:
        place.select_hyperslab((0, 0, 0), (none, 1, 1), (3, 1, 1), size)
    else:
        place.select_hyperslab((0, 0, 0), (none, 1, 1), (1, 1, 1), (1, ROWS, COLUMNS))
        of.select_hyperslab((0, 0, 0), (none, 1, 1), (1, 1, 1), (1, ROWS, COLUMNS))
    plist.set_virtual(place, source.encode(), b"data", of)
    place.select_all()
    with h5py.File(path, "w") as file:
        h5py.h5d.create(exchange(file).id, b"data", h5py.h5t.IEEE_F32LE, place, plist)
        described(file["exchange/data"])


def virtual_kinds(folder):
    (folder / "kinds").mkdir()
    views = [f"view{at}" for at in range(VIEWS)]
    with h5py.File(folder / "kinds/views.h5", "w") as file:
        for at, name in enumerate(views):
            file[f"all/{name}"] = LINES[at]
        file.create_dataset("data", data=LINES, maxshape=(None, ROWS, COLUMNS), chunks=True)
        file["left"], file["right"] = LINES[:, :, :2], LINES[:, :, 2:]
        file["odd"], file["even"] = LINES[1::2], LINES[::2]
        file["short"] = LINES[:2]
    each = [(at, "kinds/views.h5", f"all/{name}", (ROWS, COLUMNS)) for at, name in enumerate(views)]
    for name, how in [("each", {}), ("latest", {"libver": "latest"}), ("block", {"userblock_size": 512})]:
        made_of(folder / f"virtual_{name}.h5", each, **how)
    sides = [(np.s_[:, :, :2], "left", 2), (np.s_[:, :, 2:], "right", 3)]
    made_of(folder / "virtual_sides.h5", [(at, "kinds/views.h5", name, (VIEWS, ROWS, size)) for at, name, size in sides])
    turns = [(np.s_[1::2], "odd"), (np.s_[::2], "even")]
    for name, how in [("turns", {}), ("turns_latest", {"libver": "latest"})]:
        made_of(folder / f"virtual_{name}.h5", [(at, "kinds/views.h5", part, (3, ROWS, COLUMNS)) for at, part in turns], **how)
    whole = (np.s_[:], "exchange/data", (VIEWS, ROWS, COLUMNS))
    for name, of in [("nested", "virtual_each.h5"), ("missing_nested", "missing_part.h5")]:
        made_of(folder / (f"virtual_{name}.h5" if name == "nested" else f"{name}.h5"), [(whole[0], of, *whole[1:])])
    made_of(folder / "missing_set.h5", each[:5] + [(5, "kinds/views.h5", "all/view9", (ROWS, COLUMNS))])
    made_of(folder / "missing_view.h5", each[:4] + each[5:])
    made_of(folder / "missing_end.h5", [(np.s_[:], "kinds/views.h5", "short", (VIEWS, ROWS, COLUMNS))])
    endless(folder / "virtual_endless.h5", "kinds/views.h5")
    endless(folder / "virtual_pattern.h5", "raw/part%b.h5", patterns=True)
    endless(folder / "missing_block.h5", "raw/none%b.h5", patterns=True)
    endless(folder / "missing_endless.h5", "raw/none.h5")
    # The projections of an NXtomo, and the acquisitions of an ISMRMRD file.
    layout = h5py.VirtualLayout((6, ROWS, COLUMNS), "u2")
    layout[:] = h5py.VirtualSource("raw/none.h5", "data", (6, ROWS, COLUMNS))
    with h5py.File(folder / "missing_source.nxs", "w") as file:
        detector = nxtomo(file)
        del detector["data"]
        detector.create_virtual_dataset("data", layout)


def pipes(folder):
    """Links, virtual data sets and raw files that lead to a pipe, which would wait for ever for another program."""
    os.mkfifo(folder / "raw/pipe.h5")
    with h5py.File(folder / "pipe_link.h5", "w") as file:
        exchange(file)["data"] = h5py.ExternalLink("raw/pipe.h5", "/data")
    with h5py.File(folder / "pipe_many.h5", "w", libver="latest") as file:
        group = file.create_group("exchange")
        for at in range(40):
            group[f"data{at}"] = h5py.ExternalLink("raw/pipe.h5" if at == 33 else "raw/raw.h5", "/data")
    with h5py.File(folder / "pipe_behind.h5", "w") as file:
        file["exchange"] = h5py.ExternalLink("pipe_link.h5", "/exchange")
    with h5py.File(folder / "pipe_storage.h5", "w") as file:
        external = [(os.fsencode(folder / "raw/pipe.h5"), 0, LINES.nbytes)]
        described(exchange(file).create_dataset("data", LINES.shape, "f4", external=external))
    made_of(folder / "pipe_virtual.h5", [(np.s_[:], "raw/pipe.h5", "data", LINES.shape)])
    endless(folder / "pipe_pattern.h5", "raw/pip%b.h5", patterns=True)
    (folder / "raw/pip0.h5").write_bytes((folder / "raw/part0.h5").read_bytes())
    os.mkfifo(folder / "raw/pip1.h5")
    with h5py.File(folder / "pipe_device.h5", "w") as file:
        exchange(file)["data"] = h5py.ExternalLink("/dev/zero", "/data")


def layouts(folder):
    (folder / "raw/numbers.raw").write_bytes(b"head" + LINES.tobytes())
    (folder / "raw/short.raw").write_bytes(LINES.tobytes()[:-4])
    for name, raw, start in [("storage", "numbers", 4), ("short_storage", "short", 0), ("missing_storage", "none", 0)]:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            external = [(os.fsencode(folder / f"raw/{raw}.raw"), start, LINES.nbytes)]
            described(exchange(file).create_dataset("data", LINES.shape, "f4", external=external))
    with h5py.File(folder / "block.h5", "w", userblock_size=512) as file:
        described(exchange(file).create_dataset("data", data=LINES))
    for size in [1024, 1 << 16]:
        with h5py.File(folder / f"block_{size}.h5", "w", userblock_size=size) as file:
            described(exchange(file).create_dataset("data", data=LINES))
    with h5py.File(folder / "compact.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(LINES.shape)
        data = h5py.h5d.create(exchange(file).id, b"data", h5py.h5t.IEEE_F32LE, space, plist)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, LINES)
        described(file["exchange/data"])
    for filters in [{"compression": "gzip", "shuffle": True}, {"compression": "lzf"}, {"fletcher32": True}, {"scaleoffset": 3}]:
        with h5py.File(folder / f"filter_{list(filters)[0]}_{list(filters.values())[0]}.h5", "w") as file:
            described(exchange(file).create_dataset("data", data=LINES, chunks=(2, 1, 5), **filters))
    # Filters that a program lacks are left out where they are optional; here one chunk states that it went through.
    for name, mask in [("filter_left_out", 1), ("filter_used", 0)]:
        with h5py.File(folder / f"{name}.h5", "w") as file:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk(LINES.shape)
            plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
            space = h5py.h5s.create_simple(LINES.shape)
            data = h5py.h5d.create(exchange(file).id, b"data", h5py.h5t.IEEE_F32LE, space, plist)
            data.write_direct_chunk((0, 0, 0), LINES.tobytes(), filter_mask=mask)
            described(file["exchange/data"])


def spelt(text):
    """A text as an attribute in every type that programs write."""
    fixed = h5py.h5t.C_S1.copy()
    fixed.set_size(12)
    fixed.set_strpad(h5py.h5t.STR_SPACEPAD)
    yield "variable", text, None
    yield "ascii", text, h5py.string_dtype("ascii")
    yield "fixed", np.bytes_(text), None
    yield "fixed_utf8", np.array(text.encode(), h5py.string_dtype("utf-8", 16)), None
    yield "one", np.array([text], h5py.string_dtype()), None
    yield "one_fixed", np.array([text.encode()]), None
    yield "padded", text.encode().ljust(12), fixed


def attribute(at, name, value, kind):
    if isinstance(kind, h5py.h5t.TypeID):
        made = h5py.h5a.create(at.id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
        made.write(np.array(value, "S12"), mtype=kind)
    else:
        at.attrs.create(name, value, dtype=kind)


def nxtomo(file, name="entry", keys=(1, 1, 0, 0, 0, 0), units="degrees", **more):
    """Views hold 1000 + number, others 4000; angles are 30 degrees apart."""
    entry = file.create_group(name)
    entry["definition"] = "NXtomo"
    keys = np.array(keys)
    images = np.full((keys.size, ROWS, COLUMNS), 4000, np.uint16)
    views = np.flatnonzero(keys.ravel() == 0)
    images[views] = 1000 + views[:, None, None]
    detector = entry.create_group("instrument/detector")
    detector["data"] = images
    detector["image_key"] = keys
    entry["sample/rotation_angle"] = 30.0 * np.arange(keys.size)
    entry["sample/rotation_angle"].attrs["units"] = units
    for key, value in more.items():
        detector[key] = value
    return detector


def attributes(folder):
    for kind, value, dtype in spelt("mrad"):
        with h5py.File(folder / f"mrad_{kind}.h5", "w") as file:
            data = exchange(file).create_dataset("data", data=LINES)
            attribute(data, "description", *(v for v in next(s[1:] for s in spelt("line integrals") if s[0] == "fixed")))
            del file["exchange/theta"]
            file["exchange/theta"] = 1000 * np.deg2rad(DEGREES)
            attribute(file["exchange/theta"], "units", value, dtype)
    for name, value in [("latin", np.bytes_(b"\xb0")), ("empty", h5py.Empty("S1")), ("speed", "deg/s"), ("numeric", 1.5)]:
        with h5py.File(folder / f"units_{name}.h5", "w") as file:
            described(exchange(file).create_dataset("data", data=LINES))
            file["exchange/theta"].attrs["units"] = value
    for name, size, units in [("micron", np.float32([6.5]), np.bytes_("um")), ("metre", 6.5e-6, "m"), ("none", 6.5, None), ("pixel", 1, "pixel"), ("wrong", 1.0, "V")]:
        with h5py.File(folder / f"pixel_{name}.nxs", "w") as file:
            detector = nxtomo(file, x_pixel_size=size, y_pixel_size=2 * size)
            for axis in "xy":
                if units is not None:
                    detector[f"{axis}_pixel_size"].attrs["units"] = units
    with h5py.File(folder / "pixel.h5", "w") as file:
        described(exchange(file).create_dataset("data", data=LINES))
        file["measurement/instrument/detector/x_pixel_size"] = 0.65
        file["measurement/instrument/detector/x_pixel_size"].attrs["units"] = "microns"


def entries(folder):
    with h5py.File(folder / "alignment.nxs", "w") as file:
        nxtomo(file, keys=[1, 0, 0, 0, 0, 0], image_key_control=[1, 0, 0, 3, -1, -1])
    with h5py.File(folder / "column.nxs", "w") as file:
        nxtomo(file, keys=[[1], [0], [0]])
    with h5py.File(folder / "short_keys.nxs", "w") as file:
        nxtomo(file, image_key_control=[1, 1, 0])
    with h5py.File(folder / "control.nxs", "w") as file:
        detector = nxtomo(file, keys=[2, 1, 1, 0, 0, 0], image_key_control=[2, 1, 1, 0, 0, -1])
        del detector["image_key"], file["entry/definition"]
    with h5py.File(folder / "default.nxs", "w") as file:
        nxtomo(file, "a1", keys=[1, 0, 0, 0])
        nxtomo(file, "b1", keys=[1, 0, 0])
        file.attrs["default"] = "/b1"
    with h5py.File(folder / "several.nxs", "w") as file:
        file.create_group("entry0000")["definition"] = "NXtomo"
        nxtomo(file, "entry0001", keys=[1, 0, 0, 0])
        nxtomo(file, "entry0002", keys=[1, 0, 0])
        file["newest"] = h5py.SoftLink("/entry0002")
    with h5py.File(folder / "no_flats.h5", "w") as file:
        exchange(file)["data"] = LINES
        file["exchange/data_dark"] = np.full((1, ROWS, COLUMNS), 0.5, np.float32)
    with h5py.File(folder / "no_angles.h5", "w") as file:
        file["exchange/data"] = LINES
        described(file["exchange/data"])


def unwritten(folder):
    """Numbers that a broken-off measurement did not write, and some that are left out on purpose."""
    (folder / "unwritten").mkdir()
    with h5py.File(folder / "unwritten/arrays.hdf5", "w") as file:
        file.create_dataset("half", (6, 4), "f4", chunks=(2, 4))[:4] = 1
        file.create_dataset("nothing", (6, 4), "f4")
        file["whole"] = np.ones((6, 4), np.float32)

    def counts(name):
        file = h5py.File(folder / f"unwritten/{name}.h5", "w")
        group = exchange(file)
        group["data"] = LINES
        group["data_white"] = np.full((2, ROWS, COLUMNS), 99, np.float32)
        return file, group

    def lines(name, chunks):
        file = h5py.File(folder / f"unwritten/{name}.h5", "w")
        return file, described(exchange(file).create_dataset("data", LINES.shape, "f4", chunks=chunks))

    file, data = lines("views", (1, ROWS, COLUMNS))
    data[:4] = LINES[:4]
    file.close()
    file, data = lines("tile", (1, 1, COLUMNS))
    for view, row in np.ndindex(VIEWS, ROWS):
        if (view, row) != (2, 1):
            data[view, row] = LINES[view, row]
    file.close()
    for name, chunks in [("nothing", None), ("no_chunk", (2, 1, COLUMNS))]:
        lines(name, chunks)[0].close()
    for name, key, shape, more in [
        ("angles", "theta", (VIEWS,), {}),
        ("angles_half", "theta", (VIEWS,), {"chunks": (2,)}),
        ("darks", "data_dark", (3, ROWS, COLUMNS), {"chunks": (1, ROWS, COLUMNS)}),
        ("flats", "data_white", (150000, ROWS, 1000), {}),
        ("filled", "data_dark", (3, ROWS, COLUMNS), {"fillvalue": 4}),
        ("filled_big", "data_dark", (150000, ROWS, 1000), {"fillvalue": 4}),
    ]:
        file, group = counts(name)
        if key in group:
            del group[key]
        data = group.create_dataset(key, shape, "f4", **more)
        if name == "angles_half":
            data[:3] = DEGREES[:3]
        file.close()
    with h5py.File(folder / "unwritten/source.h5", "w") as file:
        file["half"] = LINES[:3]
        file["flat"] = np.where(np.arange(VIEWS) == 4, 0, LINES.T).T
        file["theta"] = DEGREES
        file.create_dataset("never", (3, ROWS, COLUMNS), "f4")
    for name, key, shape, at, source, fill in [
        ("virtual_hole", "data", LINES.shape, np.s_[:3], ("half", (3, ROWS, COLUMNS)), None),
        ("virtual_gone", "data", LINES.shape, np.s_[3:], ("gone", (3, ROWS, COLUMNS)), None),
        ("virtual_short", "data", LINES.shape, np.s_[:], ("half", LINES.shape), None),
        ("virtual_never", "data", LINES.shape, np.s_[3:], ("never", (3, ROWS, COLUMNS)), None),
        ("virtual_angles", "theta", (VIEWS,), np.s_[:4], ("theta", (VIEWS,)), None),
        ("virtual_darks", "data_dark", (3, ROWS, COLUMNS), np.s_[:], ("gone", (3, ROWS, COLUMNS)), None),
        ("virtual_row", "data", LINES.shape, np.s_[:], ("flat", LINES.shape), None),
        ("virtual_gap", "data", (VIEWS, ROWS + 1, COLUMNS), np.s_[:, 1:], ("flat", LINES.shape), 7),
        ("virtual_gap_unsaid", "data", (VIEWS, ROWS + 1, COLUMNS), np.s_[:, 1:], ("flat", LINES.shape), None),
    ]:
        layout = h5py.VirtualLayout(shape, "f4")
        if name in ["virtual_gone", "virtual_never"]:
            layout[:3] = h5py.VirtualSource("source.h5", "half", (3, ROWS, COLUMNS))
        source = h5py.VirtualSource("source.h5", *source)
        layout[at] = source[at] if name == "virtual_angles" else source
        if key == "data":
            file = h5py.File(folder / f"unwritten/{name}.h5", "w")
            described(exchange(file).create_virtual_dataset(key, layout, fillvalue=fill))
        else:
            file, group = counts(name)
            if key in group:
                del group[key]
            group.create_virtual_dataset(key, layout, fillvalue=fill)
        file.close()


def write(folder):
    for make in [links, virtual, layouts, attributes, entries, unwritten, pipes]:
        make(folder)


if __name__ == "__main__":
    {"write": write}[sys.argv[1]](pathlib.Path(sys.argv[2]))
