#compdef netctl
# Completion of netctl for zsh: source it, or put it into a folder of $fpath as _netctl.
_netctl() {
    local -a found
    found=(${(f)"$(${words[1]} __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    compadd -a found
}
if [ "$funcstack[1]" = _netctl ]; then _netctl "$@"; else compdef _netctl netctl; fi
