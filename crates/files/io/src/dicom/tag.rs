//! The elements that are read and written, as PS3.6 names them.

/// An element's number, group before element, and its keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) name: &'static str,
}

macro_rules! tags {
    ($($name:ident = $number:literal $keyword:literal;)*) => {
        $(pub(super) const $name: Tag = Tag { number: $number, name: $keyword };)*
    };
}

tags! {
    GROUP_LENGTH = 0x0002_0000 "FileMetaInformationGroupLength";
    VERSION = 0x0002_0001 "FileMetaInformationVersion";
    MEDIA_CLASS = 0x0002_0002 "MediaStorageSOPClassUID";
    MEDIA_INSTANCE = 0x0002_0003 "MediaStorageSOPInstanceUID";
    TRANSFER_SYNTAX = 0x0002_0010 "TransferSyntaxUID";
    IMPLEMENTATION = 0x0002_0012 "ImplementationClassUID";
    IMPLEMENTATION_NAME = 0x0002_0013 "ImplementationVersionName";
    RECORDS = 0x0004_1220 "DirectoryRecordSequence";
    REFERENCED_FILE = 0x0004_1500 "ReferencedFileID";
    CHARACTER_SET = 0x0008_0005 "SpecificCharacterSet";
    IMAGE_TYPE = 0x0008_0008 "ImageType";
    SOP_CLASS = 0x0008_0016 "SOPClassUID";
    SOP_INSTANCE = 0x0008_0018 "SOPInstanceUID";
    STUDY_DATE = 0x0008_0020 "StudyDate";
    CONTENT_DATE = 0x0008_0023 "ContentDate";
    STUDY_TIME = 0x0008_0030 "StudyTime";
    CONTENT_TIME = 0x0008_0033 "ContentTime";
    ACCESSION = 0x0008_0050 "AccessionNumber";
    MODALITY = 0x0008_0060 "Modality";
    CONVERSION = 0x0008_0064 "ConversionType";
    MANUFACTURER = 0x0008_0070 "Manufacturer";
    PHYSICIAN = 0x0008_0090 "ReferringPhysicianName";
    CODE = 0x0008_0100 "CodeValue";
    CODE_SCHEME = 0x0008_0102 "CodingSchemeDesignator";
    CODE_MEANING = 0x0008_0104 "CodeMeaning";
    SERIES_DESCRIPTION = 0x0008_103e "SeriesDescription";
    MODEL = 0x0008_1090 "ManufacturerModelName";
    PATIENT_NAME = 0x0010_0010 "PatientName";
    PATIENT_ID = 0x0010_0020 "PatientID";
    BIRTH_DATE = 0x0010_0030 "PatientBirthDate";
    SEX = 0x0010_0040 "PatientSex";
    SCANNING_SEQUENCE = 0x0018_0020 "ScanningSequence";
    SEQUENCE_VARIANT = 0x0018_0021 "SequenceVariant";
    SCAN_OPTIONS = 0x0018_0022 "ScanOptions";
    ACQUISITION_TYPE = 0x0018_0023 "MRAcquisitionType";
    THICKNESS = 0x0018_0050 "SliceThickness";
    KVP = 0x0018_0060 "KVP";
    REPETITION_TIME = 0x0018_0080 "RepetitionTime";
    ECHO_TIME = 0x0018_0081 "EchoTime";
    INVERSION_TIME = 0x0018_0082 "InversionTime";
    FREQUENCY = 0x0018_0084 "ImagingFrequency";
    NUCLEUS = 0x0018_0085 "ImagedNucleus";
    ECHO_NUMBERS = 0x0018_0086 "EchoNumbers";
    FIELD_STRENGTH = 0x0018_0087 "MagneticFieldStrength";
    BETWEEN_SLICES = 0x0018_0088 "SpacingBetweenSlices";
    ECHO_TRAIN = 0x0018_0091 "EchoTrainLength";
    SOFTWARE = 0x0018_1020 "SoftwareVersions";
    PROTOCOL = 0x0018_1030 "ProtocolName";
    TRIGGER_TIME = 0x0018_1060 "TriggerTime";
    IMAGER_SPACING = 0x0018_1164 "ImagerPixelSpacing";
    ACQUISITION_MATRIX = 0x0018_1310 "AcquisitionMatrix";
    PHASE_DIRECTION = 0x0018_1312 "InPlanePhaseEncodingDirection";
    FLIP_ANGLE = 0x0018_1314 "FlipAngle";
    NOMINAL_SPACING = 0x0018_2010 "NominalScannedPixelSpacing";
    PATIENT_POSITION = 0x0018_5100 "PatientPosition";
    EFFECTIVE_ECHO_TIME = 0x0018_9082 "EffectiveEchoTime";
    B_VALUE = 0x0018_9087 "DiffusionBValue";
    MR_TIMING = 0x0018_9112 "MRTimingAndRelatedParametersSequence";
    MR_ECHO = 0x0018_9114 "MREchoSequence";
    MR_DIFFUSION = 0x0018_9117 "MRDiffusionSequence";
    EQUIPMENT = 0x0018_a001 "ContributingEquipmentSequence";
    STUDY = 0x0020_000d "StudyInstanceUID";
    SERIES = 0x0020_000e "SeriesInstanceUID";
    STUDY_ID = 0x0020_0010 "StudyID";
    SERIES_NUMBER = 0x0020_0011 "SeriesNumber";
    ACQUISITION = 0x0020_0012 "AcquisitionNumber";
    INSTANCE = 0x0020_0013 "InstanceNumber";
    PATIENT_ORIENTATION = 0x0020_0020 "PatientOrientation";
    POSITION = 0x0020_0032 "ImagePositionPatient";
    ORIENTATION = 0x0020_0037 "ImageOrientationPatient";
    FRAME_OF_REFERENCE = 0x0020_0052 "FrameOfReferenceUID";
    LATERALITY = 0x0020_0060 "Laterality";
    TEMPORAL_POSITION = 0x0020_0100 "TemporalPositionIdentifier";
    TEMPORAL_POSITIONS = 0x0020_0105 "NumberOfTemporalPositions";
    IN_ACQUISITION = 0x0020_1002 "ImagesInAcquisition";
    POSITION_REFERENCE = 0x0020_1040 "PositionReferenceIndicator";
    IN_SERIES = 0x0020_1209 "NumberOfSeriesRelatedInstances";
    FRAME_CONTENT = 0x0020_9111 "FrameContentSequence";
    PLANE_POSITION = 0x0020_9113 "PlanePositionSequence";
    PLANE_ORIENTATION = 0x0020_9116 "PlaneOrientationSequence";
    TEMPORAL_INDEX = 0x0020_9128 "TemporalPositionIndex";
    SAMPLES = 0x0028_0002 "SamplesPerPixel";
    PHOTOMETRIC = 0x0028_0004 "PhotometricInterpretation";
    FRAMES = 0x0028_0008 "NumberOfFrames";
    ROWS = 0x0028_0010 "Rows";
    COLUMNS = 0x0028_0011 "Columns";
    PIXEL_SPACING = 0x0028_0030 "PixelSpacing";
    BITS_ALLOCATED = 0x0028_0100 "BitsAllocated";
    BITS_STORED = 0x0028_0101 "BitsStored";
    HIGH_BIT = 0x0028_0102 "HighBit";
    REPRESENTATION = 0x0028_0103 "PixelRepresentation";
    PADDING = 0x0028_0120 "PixelPaddingValue";
    PADDING_LIMIT = 0x0028_0121 "PixelPaddingRangeLimit";
    FLOAT_PADDING = 0x0028_0122 "FloatPixelPaddingValue";
    DOUBLE_PADDING = 0x0028_0123 "DoubleFloatPixelPaddingValue";
    FLOAT_PADDING_LIMIT = 0x0028_0124 "FloatPixelPaddingRangeLimit";
    DOUBLE_PADDING_LIMIT = 0x0028_0125 "DoubleFloatPixelPaddingRangeLimit";
    WINDOW_CENTRE = 0x0028_1050 "WindowCenter";
    WINDOW_WIDTH = 0x0028_1051 "WindowWidth";
    INTERCEPT = 0x0028_1052 "RescaleIntercept";
    SLOPE = 0x0028_1053 "RescaleSlope";
    RESCALE_TYPE = 0x0028_1054 "RescaleType";
    WINDOW_FUNCTION = 0x0028_1056 "VOILUTFunction";
    LUT = 0x0028_3000 "ModalityLUTSequence";
    LUT_DESCRIPTOR = 0x0028_3002 "LUTDescriptor";
    LUT_EXPLANATION = 0x0028_3003 "LUTExplanation";
    LUT_TYPE = 0x0028_3004 "ModalityLUTType";
    LUT_DATA = 0x0028_3006 "LUTData";
    PIXEL_MEASURES = 0x0028_9110 "PixelMeasuresSequence";
    TRANSFORMATION = 0x0028_9145 "PixelValueTransformationSequence";
    REAL_UNITS = 0x0040_08ea "MeasurementUnitsCodeSequence";
    REAL_VALUES = 0x0040_9096 "RealWorldValueMappingSequence";
    REAL_LABEL = 0x0040_9210 "LUTLabel";
    REAL_LAST = 0x0040_9211 "RealWorldValueLastValueMapped";
    REAL_FIRST = 0x0040_9216 "RealWorldValueFirstValueMapped";
    REAL_INTERCEPT = 0x0040_9224 "RealWorldValueIntercept";
    REAL_SLOPE = 0x0040_9225 "RealWorldValueSlope";
    PURPOSE = 0x0040_a170 "PurposeOfReferenceCodeSequence";
    SLICES = 0x0054_0081 "NumberOfSlices";
    SEGMENTATION = 0x0062_0001 "SegmentationType";
    MOST_FRACTION = 0x0062_000e "MaximumFractionalValue";
    FRACTION_TYPE = 0x0062_0010 "SegmentationFractionalType";
    IMAGE_PLANE_SPACING = 0x3002_0011 "ImagePlanePixelSpacing";
    DOSE_UNITS = 0x3004_0002 "DoseUnits";
    FRAME_OFFSETS = 0x3004_000c "GridFrameOffsetVector";
    DOSE_SCALING = 0x3004_000e "DoseGridScaling";
    SHARED = 0x5200_9229 "SharedFunctionalGroupsSequence";
    PER_FRAME = 0x5200_9230 "PerFrameFunctionalGroupsSequence";
    SPECTROSCOPY = 0x5600_0020 "SpectroscopyData";
    EXTENDED_OFFSETS = 0x7fe0_0001 "ExtendedOffsetTable";
    FLOAT_PIXELS = 0x7fe0_0008 "FloatPixelData";
    DOUBLE_PIXELS = 0x7fe0_0009 "DoubleFloatPixelData";
    PIXEL_DATA = 0x7fe0_0010 "PixelData";
}

/// Sequences whose items are read.
pub(super) const SEQUENCES: [Tag; 14] = [
    RECORDS,
    SHARED,
    PER_FRAME,
    PLANE_POSITION,
    PLANE_ORIENTATION,
    FRAME_CONTENT,
    MR_TIMING,
    MR_ECHO,
    MR_DIFFUSION,
    PIXEL_MEASURES,
    TRANSFORMATION,
    LUT,
    REAL_VALUES,
    REAL_UNITS,
];
