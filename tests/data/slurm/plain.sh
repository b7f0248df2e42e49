#!/bin/sh
#SBATCH --job-name=hyper-repro
#SBATCH --array=0-0
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=3
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir=/shared/runs/r1/slurm
#SBATCH --output=/shared/runs/r1/slurm/%A_%a.log
exec srun --nodes=1 --ntasks=1 --cpus-per-task=2 --quiet env 'PYTHONPATH=/shared/hyper repro' /shared/venv/bin/python -m repro.engines.slurm_task run /shared/runs/r1/slurm/a.json
