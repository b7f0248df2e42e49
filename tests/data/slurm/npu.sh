#!/bin/sh
#SBATCH --job-name=hyper-repro
#SBATCH --array=0-11
#SBATCH --partition=debug
#SBATCH --account="proj one"
#SBATCH --qos=low
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --gres=npu:910b:8
#SBATCH --mem=64G
#SBATCH --exclusive
#SBATCH --time=95
#SBATCH --no-requeue
#SBATCH --open-mode=append
#SBATCH --chdir=/shared/runs/r1/slurm
#SBATCH --output=/shared/runs/r1/slurm/%A_%a.log
exec srun --nodes=1 --ntasks=1 --cpus-per-task=8 --quiet env 'PYTHONPATH=/shared/hyper repro' /shared/venv/bin/python -m repro.engines.slurm_task run /shared/runs/r1/slurm/a.json
