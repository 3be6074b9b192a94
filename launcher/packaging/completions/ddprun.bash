# bash completion for ddprun, ddprun-launch
_ddprun_complete() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} word i
  # Readline splits at '=': --name=value arrives as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  # Behind the script everything is the script's own.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case $word in
    --nnodes|--nproc-per-node|--nproc_per_node|--role|--rdzv-backend|--rdzv_backend|--rdzv-endpoint|--rdzv_endpoint|--rdzv-id|--rdzv_id|--rdzv-conf|--rdzv_conf|--node-rank|--node_rank|--master-addr|--master_addr|--master-port|--master_port|--local-addr|--local_addr|--store-conf|--store_conf|--max-restarts|--max_restarts|--monitor-interval|--monitor_interval|--shutdown-timeout|--shutdown_timeout|--signals-to-handle|--signals_to_handle|--start-method|--start_method|--local-rank-arg|--local_rank_arg|--python|--omp-num-threads|--omp_num_threads|--stdin|--log-dir|--log_dir|--redirects|-r|--tee|-t|--log-line-prefix-template|--log_line_prefix_template|--local-ranks-filter|--local_ranks_filter|--duplicate-stdout-filters|--duplicate_stdout_filters|--duplicate-stderr-filters|--duplicate_stderr_filters|--event-log-handler|--event_log_handler|--logs-specs|--logs_specs|--gpus|--gpu-binding|--gpu_binding|--gpu-ids-format|--gpu_ids_format|--numa-binding|--numa_binding|--config|--print-completion|--print_completion)
      ((i++))
      [[ ${COMP_WORDS[i]} == = ]] && ((i++))
      ;;
    -*) ;;
    *)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    esac
  done
  case $prev in
    --nnodes)
      COMPREPLY=()
      return
      ;;
    --nproc-per-node|--nproc_per_node)
      mapfile -t COMPREPLY < <(compgen -W 'auto cpu gpu xpu' -- "$cur")
      return
      ;;
    --role)
      COMPREPLY=()
      return
      ;;
    --rdzv-backend|--rdzv_backend)
      mapfile -t COMPREPLY < <(compgen -W 'static c10d' -- "$cur")
      return
      ;;
    --rdzv-endpoint|--rdzv_endpoint)
      COMPREPLY=()
      return
      ;;
    --rdzv-id|--rdzv_id)
      COMPREPLY=()
      return
      ;;
    --rdzv-conf|--rdzv_conf)
      COMPREPLY=()
      return
      ;;
    --node-rank|--node_rank)
      COMPREPLY=()
      return
      ;;
    --master-addr|--master_addr)
      COMPREPLY=()
      return
      ;;
    --master-port|--master_port)
      COMPREPLY=()
      return
      ;;
    --local-addr|--local_addr)
      COMPREPLY=()
      return
      ;;
    --store-conf|--store_conf)
      COMPREPLY=()
      return
      ;;
    --max-restarts|--max_restarts)
      COMPREPLY=()
      return
      ;;
    --monitor-interval|--monitor_interval)
      COMPREPLY=()
      return
      ;;
    --shutdown-timeout|--shutdown_timeout)
      COMPREPLY=()
      return
      ;;
    --signals-to-handle|--signals_to_handle)
      COMPREPLY=()
      return
      ;;
    --start-method|--start_method)
      mapfile -t COMPREPLY < <(compgen -W 'spawn fork forkserver' -- "$cur")
      return
      ;;
    --local-rank-arg|--local_rank_arg)
      mapfile -t COMPREPLY < <(compgen -W 'auto always always:--local-rank always:--local_rank never' -- "$cur")
      return
      ;;
    --python)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    --omp-num-threads|--omp_num_threads)
      mapfile -t COMPREPLY < <(compgen -W 'auto torchrun' -- "$cur")
      return
      ;;
    --stdin)
      mapfile -t COMPREPLY < <(compgen -W 'all none' -- "$cur")
      return
      ;;
    --log-dir|--log_dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      return
      ;;
    --redirects|-r)
      mapfile -t COMPREPLY < <(compgen -W '0 1 2 3' -- "$cur")
      return
      ;;
    --tee|-t)
      mapfile -t COMPREPLY < <(compgen -W '0 1 2 3' -- "$cur")
      return
      ;;
    --log-line-prefix-template|--log_line_prefix_template)
      COMPREPLY=()
      return
      ;;
    --local-ranks-filter|--local_ranks_filter)
      COMPREPLY=()
      return
      ;;
    --duplicate-stdout-filters|--duplicate_stdout_filters)
      COMPREPLY=()
      return
      ;;
    --duplicate-stderr-filters|--duplicate_stderr_filters)
      COMPREPLY=()
      return
      ;;
    --event-log-handler|--event_log_handler)
      mapfile -t COMPREPLY < <(compgen -W 'null console dynamic_rendezvous' -- "$cur")
      return
      ;;
    --logs-specs|--logs_specs)
      COMPREPLY=()
      return
      ;;
    --gpus)
      COMPREPLY=()
      return
      ;;
    --gpu-binding|--gpu_binding)
      mapfile -t COMPREPLY < <(compgen -W 'shared exclusive inherit' -- "$cur")
      return
      ;;
    --gpu-ids-format|--gpu_ids_format)
      mapfile -t COMPREPLY < <(compgen -W 'index uuid' -- "$cur")
      return
      ;;
    --numa-binding|--numa_binding)
      mapfile -t COMPREPLY < <(compgen -W 'node socket exclusive core-complex' -- "$cur")
      return
      ;;
    --config)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    --print-completion|--print_completion)
      mapfile -t COMPREPLY < <(compgen -W 'bash zsh tcsh' -- "$cur")
      return
      ;;
  esac
  if [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W '--nnodes= --nproc-per-node= --role= --rdzv-backend= --rdzv-endpoint= --rdzv-id= --rdzv-conf= --standalone --node-rank= --master-addr= --master-port= --local-addr= --store-conf= --max-restarts= --monitor-interval= --shutdown-timeout= --signals-to-handle= --module --no-python --run-path --start-method= --local-rank-arg= --python= --omp-num-threads= --stdin= --log-dir= --redirects= --tee= --log-line-prefix-template= --local-ranks-filter= --duplicate-stdout-filters= --duplicate-stderr-filters= --event-log-handler= --logs-specs= --gpus= --gpu-binding= --gpu-ids-format= --virtual-local-rank --numa-binding= --config= --print-config --dry-run --print-completion= --version --help' -- "$cur")
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -o filenames -F _ddprun_complete ddprun ddprun-launch
