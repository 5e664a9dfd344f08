"""Arrays of files without a header: their names and their axes."""

import numpy as np
import pytest
import rayspin

io = pytest.importorskip("scipy.io")


@pytest.fixture(scope="module")
def kspace():
    """`[x, y, coil]`"""
    count = np.arange(10 * 12 * 3).reshape(10, 12, 3)
    return (np.cos(count) + 1j * np.sin(3 * count)).astype(np.complex64)


def test_arrays_of_matlab_are_chosen_by_name(tmp_path, kspace):
    path = tmp_path / "brain.mat"
    io.savemat(path, {"DATA": kspace, "s": {"k": kspace}, "note": "text"}, do_compression=True)
    for name in ["DATA", "s.k"]:
        scan = rayspin.read_scan(f"{path}:{name}")
        found, trajectory = scan.arrays()
        np.testing.assert_array_equal(found, kspace.T)
        assert trajectory is None and "x, y, coil" in " ".join(scan.notes)
    wanted = rayspin.recon(rayspin.Scan.from_arrays(kspace.T), "cartesian", device="cpu").image
    np.testing.assert_array_equal(rayspin.recon(f"{path}:DATA", "cartesian", device="cpu").image, wanted)
    with pytest.raises(ValueError, match="DATA, s.k"):
        rayspin.read_scan(path)
    with pytest.raises(ValueError, match="text"):
        rayspin.read_scan(f"{path}:note")


def test_axes_are_named(tmp_path, kspace):
    np.savez(tmp_path / "both.npz", xyc=kspace, yxc=kspace.transpose(1, 0, 2)[None])
    for name, order in [("xyc", "x,y,coil"), ("yxc", "1, y, x, channel")]:
        scan = rayspin.read_scan(f"{tmp_path}/both.npz:{name}", order=order)
        np.testing.assert_array_equal(scan.arrays()[0], kspace.T)
    for order in ["x,y", "x,y,q", "x,coil", "readout,spoke,coil"]:
        with pytest.raises(ValueError):
            rayspin.read_scan(f"{tmp_path}/both.npz:xyc", order=order)


def test_named_axes_count_images(tmp_path, kspace):
    np.save(tmp_path / "cine.npy", np.stack([kspace.T, 2 * kspace.T]))
    found = rayspin.recon(tmp_path / "cine.npy", "cartesian", device="cpu", order="repetition,coil,y,x")
    np.testing.assert_allclose(found.image[1], 2 * found.image[0], rtol=1e-5)
    one = rayspin.recon(tmp_path / "cine.npy", "cartesian", device="cpu", order="phase,coil,y,x", cardiac_phases=1)
    np.testing.assert_allclose(one.image, found.image[1], rtol=1e-5)
    sets = rayspin.recon(tmp_path / "cine.npy", "cartesian", device="cpu", order="set,coil,y,x", sets=1)
    np.testing.assert_allclose(sets.image, found.image[1], rtol=1e-5)
    scan = rayspin.read_scan(tmp_path / "cine.npy", order="set,coil,y,x")
    assert scan.images == 2
    for image in range(2):
        np.testing.assert_allclose(scan.arrays(image)[0], (1 + image) * kspace.T, rtol=1e-6)
    np.testing.assert_allclose(rayspin.recon(scan, "cartesian", device="cpu").image, found.image, rtol=1e-5)
    with pytest.raises(ValueError, match="order="):
        rayspin.recon(tmp_path / "cine.npy", "cartesian", device="cpu", order="x,x")
