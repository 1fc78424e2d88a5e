# The kernel of a bash context: one line from the guest, "run COUNT TEXT", is one cell.
#
# Descriptor 3 is the guest's socket; cells do not see it. Cells run at the top level of this script, so
# that what they declare stays. An interrupt leaves a cell by `continue`, which ends all loops it is in,
# or returns from the function it is in; the guest repeats it for that one's caller, and for a cell
# that was still being read, when interrupts would tear its line.
#
# A cell may call its functions and aliases as it likes: what is done here is said to be builtin, and the text of a cell
# is only parsed here. Under `set -x` the shell would tell of what happens between two cells.
shopt -s expand_aliases
__hearth_trap='if ((${#FUNCNAME[@]} > 0)); then builtin return 130; fi; builtin continue 1000'
builtin printf 'ready\n' >&3
__hearth_open=
__hearth_before=
while
  { case $- in *x*) __hearth_before='builtin set -x; ' ;; esac; builtin set +xv; } 2>&-
  builtin trap '' INT
  if [[ -n $__hearth_open ]]; then
    builtin printf 'end %d 130\n' "$__hearth_open" >&3
    __hearth_open=
  fi
  IFS=' ' builtin read -r __hearth_word __hearth_count __hearth_line <&3
do
  [[ $__hearth_word == run ]] || continue
  __hearth_open=$__hearth_count
  builtin trap "$__hearth_trap" INT
  builtin eval "$__hearth_line"
  builtin eval "$__hearth_before$__hearth_code" 3<&-
  {
    __hearth_status=$? __hearth_before=
    case $- in *x*) __hearth_before='builtin set -x; ' ;; esac
    builtin set +xv
  } 2>&-
  builtin printf 'end %d %d\n' "$__hearth_open" "$__hearth_status" >&3
  __hearth_open=
done
