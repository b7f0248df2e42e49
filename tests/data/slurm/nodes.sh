#!/bin/sh
#SBATCH --job-name=hyper-repro
#SBATCH --array=0-2
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --gres=npu:4
#SBATCH --time=7
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir=/shared/runs/r1/slurm
#SBATCH --output=/shared/runs/r1/slurm/%A_%a.log
exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=4 --quiet env 'PYTHONPATH=/shared/hyper repro' /shared/venv/bin/python -m repro.engines.slurm_task run /shared/runs/r1/slurm/a.json
