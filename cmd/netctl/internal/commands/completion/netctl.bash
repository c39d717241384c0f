# Completion of netctl for bash: source it, or put it into
# /usr/share/bash-completion/completions/netctl.
_netctl() {
    local words IFS=$' \t\n'
    # Not COMP_WORDS, which is split at colons and equals signs, too.
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    case ${COMP_LINE:0:COMP_POINT} in *[[:space:]]) words+=('') ;; esac
    mapfile -t COMPREPLY < <("${words[0]}" __complete bash "${words[@]:1}" 2>/dev/null)
}
complete -F _netctl netctl
