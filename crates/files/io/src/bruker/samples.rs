//! Small scans, written by hand for tests of damaged files and fuzzers.

use std::fmt::Write as _;

use crate::format::Sample;

/// A small scan.
#[derive(Debug, Clone)]
pub(super) struct Small {
    /// What `ACQ_sw_version` states.
    pub(super) software: &'static str,
    pub(super) method: &'static str,
    /// Samples of a readout, lines, and partitions of a volume.
    pub(super) matrix: [usize; 3],
    pub(super) dims: usize,
    pub(super) slices: usize,
    pub(super) echoes: usize,
    pub(super) repetitions: usize,
    pub(super) coils: usize,
    /// Lines after each excitation.
    pub(super) group: usize,
    /// Samples of a scan.
    pub(super) samples: usize,
    /// Scans of a repetition.
    pub(super) scans: usize,
    /// Parameters that replace or follow those of the files.
    pub(super) acqp: String,
    pub(super) more: String,
}

impl Small {
    /// FLASH of 6 × 4 places, of two slices and two coils, as ParaVision 5.1 writes it.
    pub(super) fn grid() -> Self {
        Self {
            software: "PV 5.1",
            method: "FLASH",
            matrix: [6, 4, 1],
            dims: 2,
            slices: 2,
            echoes: 1,
            repetitions: 2,
            coils: 2,
            group: 1,
            samples: 6,
            scans: 8,
            acqp: String::new(),
            more: "##$PVM_EncSteps1=( 4 )\n-2 -1 0 1\n".into(),
        }
    }

    /// RARE of three slices with trains of two, as ParaVision 6 writes it.
    pub(super) fn rare() -> Self {
        Self {
            software: "PV 6.0.1",
            method: "<Bruker:RARE>",
            slices: 3,
            group: 2,
            repetitions: 1,
            scans: 12,
            acqp: "##$ACQ_obj_order=( 3 )\n0 2 1\n".into(),
            more:
                "##$PVM_EncSteps1=( 4 )\n0 -2 1 -1\n##$PVM_RareFactor=2\n##$PVM_ObjOrderList=( 3 )\n0 2 1\n"
                    .into(),
            ..Self::grid()
        }
    }

    /// Echo-planar imaging of 6 × 4 places whose places are uneven, with partial Fourier.
    pub(super) fn trains() -> Self {
        Self {
            method: "<Bruker:EPI>",
            software: "PV 6.0.1",
            samples: 18,
            scans: 2,
            acqp: "##$ACQ_phase1_offset=( 2 )\n-5 -5\n".into(),
            more: "##$PVM_EncSteps1=( 3 )\n-1 0 1\n##$PVM_EpiNEchoes=3\n##$PVM_EpiNShots=1\n\
                   ##$PVM_EpiTrajAdjkx=( 6 )\n0 0.5 1.5 2.5 3.5 4\n\
                   ##$PVM_EpiPhaseCorrection=( 2, 4 )\n0.1 -0.2 0.3 -0.2 @2*(0.1) 0.05 0.1\n"
                .into(),
            ..Self::grid()
        }
    }

    /// A volume in a job of ParaVision 360.
    pub(super) fn volume() -> Self {
        let mut steps = ["##$PVM_EncGenSteps1=( 8 )\n".to_owned(), "##$PVM_EncGenSteps2=( 8 )\n".to_owned()];
        for pair in 0..8i32 {
            let _ = write!(steps[0], "{} ", pair % 4 - 2);
            let _ = write!(steps[1], "{} ", pair / 4 - 1);
        }
        Self {
            software: "PV-360.3.4",
            method: "<Bruker:FLASH>",
            matrix: [6, 4, 2],
            dims: 3,
            slices: 1,
            repetitions: 1,
            scans: 8,
            acqp: "##$ACQ_jobs=( 1 )\n(12, 9, 0, 8, 101, 50000, 8, 1, <job0>)\n\
                   ##$ACQ_ScanPipeJobSettings=( 1 )\n(STORE_processed, STORE_64bit_float, DISPLAY_each, LOG_none)\n"
                .into(),
            more: format!("##$PVM_EncGenTotalSteps=8\n{}\n{}\n", steps[0], steps[1]),
            ..Self::grid()
        }
    }

    /// Three projections of UTE, whose raw data have more samples than the trajectory.
    pub(super) fn projections() -> Self {
        Self {
            software: "PV 6.0.1",
            method: "<Bruker:UTE>",
            slices: 1,
            repetitions: 1,
            coils: 1,
            scans: 3,
            more: "##$NPro=3\n".into(),
            ..Self::grid()
        }
    }

    fn is_job(&self) -> bool {
        self.software.contains("360")
    }

    /// The sample of a scan.
    pub(super) fn sample(scan: usize, coil: usize, sample: usize) -> [i32; 2] {
        [(100 * scan + 10 * coil + sample) as i32 + 1, coil as i32 - sample as i32]
    }

    fn acqp(&self) -> String {
        let Self { software, dims, slices, echoes, repetitions, .. } = self;
        let objects = slices * echoes;
        let mut text = format!(
            "##TITLE=Parameter List\n##JCAMPDX=4.24\n$$ a comment\n##$ACQ_sw_version=( 65 )\n<{software}>\n\
             ##$ACQ_dim={dims}\n##$ACQ_dim_desc=( 2 )\nSpatial Spatial\n##$NI={objects}\n##$NR={repetitions}\n\
             ##$NSLICES={slices}\n##$ACQ_n_echo_images={echoes}\n##$ACQ_phase_factor={}\n##$ACQ_size=( 2 )\n{} {}\n\
             ##$BYTORDA=little\n##$ACQ_patient_pos=Head_Supine\n##$ACQ_institution=( 64 )\n<Clinic>\n",
            self.group,
            2 * self.samples,
            self.matrix[1]
        );
        if !self.is_job() {
            text.push_str(
                "##$GO_raw_data_format=GO_32BIT_SGN_INT\n##$GO_block_size=Standard_KBlock_Format\n",
            );
        }
        let _ = writeln!(text, "##$ACQ_grad_matrix=( {slices}, 3, 3 )");
        for _ in 0..*slices {
            text.push_str("1 0 0 0 1 0 0 0 1 ");
        }
        let _ = write!(text, "\n##$ACQ_slice_offset=( {slices} )\n");
        for slice in 0..*slices {
            let _ = write!(text, "{} ", 2 * slice);
        }
        text + "\n" + &self.acqp + "##END=\n"
    }

    fn method(&self) -> String {
        let Self { method, matrix, dims, coils, .. } = self;
        let list = |numbers: &[usize]| {
            let words: Vec<String> = numbers.iter().take(*dims).map(usize::to_string).collect();
            format!("( {dims} )\n{}", words.join(" "))
        };
        format!(
            "##TITLE=Parameter List\n##JCAMPDX=4.24\n##$Method={method}\n##$PVM_EncNReceivers={coils}\n\
             ##$PVM_Matrix={}\n##$PVM_Fov={}\n##$PVM_EncMatrix={}\n##$PVM_SliceThick=1.5\n##$PVM_EffSWh=50000\n{}##END=\n",
            list(matrix),
            list(&[30, 20, 10]),
            list(matrix),
            self.more
        )
    }

    fn data(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for scan in 0..self.scans * self.repetitions {
            for coil in 0..self.coils {
                for sample in 0..self.samples {
                    for part in Self::sample(scan, coil, sample) {
                        match self.is_job() {
                            true => bytes.extend(f64::from(part).to_le_bytes()),
                            false => bytes.extend(part.to_le_bytes()),
                        }
                    }
                }
            }
            if !self.is_job() {
                bytes.resize(bytes.len().next_multiple_of(1024), 0);
            }
        }
        bytes
    }

    /// Raw data and parameters.
    pub(super) fn files(&self) -> Sample {
        let name = if self.is_job() { "rawdata.job0" } else { "fid" };
        let mut files = vec![
            (name, self.data()),
            ("acqp", self.acqp().into_bytes()),
            ("method", self.method().into_bytes()),
        ];
        if self.more.contains("NPro") {
            let places = (0..3).flat_map(|spoke| {
                (0..5).flat_map(move |sample| {
                    let along = 0.1 * f64::from(sample);
                    let angle = f64::from(spoke) * 2.0;
                    [along * angle.cos(), along * angle.sin()]
                })
            });
            files.push(("traj", places.flat_map(f64::to_le_bytes).collect()));
        }
        files
    }
}

pub(crate) fn samples() -> Vec<Sample> {
    [Small::grid(), Small::rare(), Small::trains(), Small::volume(), Small::projections()]
        .iter()
        .map(Small::files)
        .collect()
}
