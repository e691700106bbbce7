# Read by interactive bash.
case $- in
  *i*) ;;
  *) return ;;
esac
shopt -s checkwinsize
PS1='\u@\h:\w\$ '
