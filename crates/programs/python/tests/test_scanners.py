"""Scans in the files of scanners."""

import numpy as np
import pytest
import rayspin

ACQP = """##TITLE=Parameter List
##$ACQ_sw_version=( 65 )
<PV 6.0.1>
##$ACQ_dim=2
##$NI=1
##$NR=1
##$NSLICES=1
##$ACQ_size=( 2 )
16 6
##$BYTORDA=little
##$GO_raw_data_format=GO_32BIT_SGN_INT
##$GO_block_size=continuous
##$ACQ_grad_matrix=( 1, 3, 3 )
1 @3*(0) 1 @3*(0) 1
##END=
"""
METHOD = """##TITLE=Parameter List
##$Method=<Bruker:FLASH>
##$PVM_EncNReceivers=1
##$PVM_Matrix=( 2 )
8 6
##$PVM_EncMatrix=( 2 )
8 6
##$PVM_Fov=( 2 )
32 24
##$PVM_EncSteps1=( 6 )
0 -3 1 -2 2 -1
##END=
"""


def test_a_folder_of_paravision_is_a_scan(tmp_path):
    numbers = np.arange(96).reshape(6, 8, 2)
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "acqp").write_text(ACQP)
    (folder / "method").write_text(METHOD)
    (folder / "fid").write_bytes(numbers.astype("<i4").tobytes())
    for path in [folder, folder / "fid"]:
        scan = rayspin.read_scan(path)
        assert (scan.shape, scan.fov_mm[:2], scan.coils) == ((6, 8), [32.0, 24.0], 1)
        wanted = (numbers[..., 0] + 1j * numbers[..., 1])[[1, 3, 5, 0, 2, 4]]
        np.testing.assert_array_equal(np.squeeze(scan.arrays()[0]), wanted.astype(np.complex64))
    (folder / "fid").write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="cut short"):
        rayspin.read_scan(folder)
