# Completion of netctl for fish: put it into ~/.config/fish/completions/netctl.fish.
function __netctl_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    $before[1] __complete fish $before[2..-1] "$current" 2>/dev/null
end
complete -c netctl -f -a '(__netctl_complete)'
