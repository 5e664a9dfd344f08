#!/bin/sh
# Images a second of a dynamic scan, file to file: 2-D golden-angle spokes, 8 coils, 192 × 192, 21 spokes an image, a new image
# every 8. Beside the whole it prints the seconds in which reading, reconstruction and writing were at work: where they
# overlap the whole is shorter than their sum.
#
#     cargo build --release && benches/stream.sh [rayspin] >benches/results/DATE-DEVICE/stream.txt
set -eu
rayspin=${1:-target/release/rayspin}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
"$rayspin" --version
"$rayspin" -q simulate mri -o "$folder/scan.h5" -t radial --angles golden --shots 1621 --matrix 192,192 --coils 8 \
    --snr 80 --dynamics beat --no-record
for options in "--method gridding --density radial --combine maps" "--method gridding --combine maps" \
    "--method cg-sense -i 10 --tolerance 0" "--method cg-sense -i 30 --tolerance 0"; do
    for output in frames.npy frames.nii.gz; do
        for round in 1 2 3; do
            echo "# recon mri scan.h5 -o $output --window 21 --stride 8 $options"
            # shellcheck disable=SC2086
            "$rayspin" recon mri "$folder/scan.h5" -o "$folder/$output" --window 21 --stride 8 $options 2>&1 |
                grep 'a second' | sed "s,$folder/,,g"
        done
    done
done
