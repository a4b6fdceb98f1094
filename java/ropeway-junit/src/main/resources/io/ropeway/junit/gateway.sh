# Runs a gateway until standard input ends, and then removes its folder.
#
# Standard input is a pipe of the JVM's: it ends when the JVM closes it, and also when the
# JVM is killed. Arguments: the folder, and the gateway's command line.
folder=$1
shift
# Ctrl-C comes to all processes of a terminal; the JVM's end is enough.
trap '' INT
exec 3<&0
"$@" 3<&- </dev/null &
gateway=$!
trap 'kill -KILL "$gateway"' TERM
{ read -r _; [ -e "$folder/ended" ] || kill "$gateway"; } <&3 3<&- &
exec 3<&-
wait "$gateway"
: >"$folder/ended"
wait
rm -rf "$folder"
