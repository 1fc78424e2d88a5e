# The kernel of a bash context: one line from the guest, "run COUNT TEXT", is one cell.
#
# Descriptor 3 is the guest's socket; cells do not see it. Cells run at the top level of this script, so
# that what they declare stays. An interrupt leaves a cell by `continue`, which ends all loops it is in,
# or returns from the function it is in; the guest repeats it for that one's caller, and for a cell
# that was still being read, when interrupts would tear its line.
__hearth_trap='if ((${#FUNCNAME[@]} > 0)); then return 130; fi; continue 1000'
printf 'ready\n' >&3
__hearth_open=
while
  trap '' INT
  if [[ -n $__hearth_open ]]; then
    printf 'end %d 130\n' "$__hearth_open" >&3
    __hearth_open=
  fi
  IFS=' ' read -r __hearth_word __hearth_count __hearth_line <&3
do
  [[ $__hearth_word == run ]] || continue
  __hearth_open=$__hearth_count
  trap "$__hearth_trap" INT
  eval "$__hearth_line" 3<&-
  printf 'end %d %d\n' "$__hearth_open" "$?" >&3
  __hearth_open=
done
