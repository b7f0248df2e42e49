# Stand-in for CANN's set_env.sh: it counts how often it was sourced, and reads variables that may not be set.
export STAND_IN_SOURCED=$((STAND_IN_SOURCED + 1))
export ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest
export ASCEND_OPP_PATH=$ASCEND_HOME_PATH/opp
export LD_LIBRARY_PATH=$ASCEND_HOME_PATH/lib64:$LD_LIBRARY_PATH
export PYTHONPATH=$ASCEND_HOME_PATH/python/site-packages:$ASCEND_OPP_PATH/built-in/op_impl/ai_core/tbe:$PYTHONPATH
ls /nowhere-in-a-container 2>/dev/null
