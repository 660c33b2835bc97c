#!/bin/bash
# An array of Slurm jobs, one for each part of a large set of sound files. Adapt the marked lines, then
#
#   sbatch recipes/batch/slurm.sh                                       # from the root of the source tree
#   recipes/batch/run.sh --output /shared/results --report              # what is done, what failed
#
# Run sbatch again to do the rest. A job that ran out of time continues after the last file that it finished.
#SBATCH --job-name=linnet
#SBATCH --array=1-100
#SBATCH --cpus-per-task=8
#SBATCH --mem=4G
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --output=linnet-%A-%a.log

# --parts is the last number of --array. For a GPU in each job: #SBATCH --gres=gpu:1, and --device cuda after --.
exec recipes/batch/run.sh --input /shared/sounds --output /shared/results --parts 100 --part "$SLURM_ARRAY_TASK_ID" \
  --threads "${SLURM_CPUS_PER_TASK:-1}" -- --format json
