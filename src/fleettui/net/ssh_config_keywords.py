"""The words of ssh_config(5): which are read here, which change something that cannot be done here."""

from __future__ import annotations

_READ = (
    "HostName User Port ProxyJump ProxyCommand HostKeyAlias IdentitiesOnly IdentityAgent AddressFamily "
    "BindAddress IdentityFile CertificateFile UserKnownHostsFile GlobalKnownHostsFile Tag"
)
READ_KEYWORDS = {name.lower(): name for name in _READ.split()}
"""Lower case -> as written in the manual."""

LIST_KEYWORDS = {"IdentityFile", "CertificateFile"}
"""Each line adds a value; everywhere else the first value wins."""

ONE_VALUE_KEYWORDS = READ_KEYWORDS.keys() - {"proxycommand", "userknownhostsfile", "globalknownhostsfile"}

NOT_DONE = {
    "canonicalizehostname": "names are taken as they stand",
    "bindinterface": "use BindAddress",
    "proxyusefdpass": "the ProxyCommand must carry the connection itself",
    "knownhostscommand": "put the keys into a known_hosts file",
    "revokedhostkeys": "use @revoked lines of known_hosts",
    "pkcs11provider": "add its keys to ssh-agent",
}
"""Words that would change whom we talk to or with which key, and what to do instead."""

# Everything else that OpenSSH 9.9 and its packages for macOS, Debian and Fedora know. A connection here has
# no terminal, no forwarded port and no shared master, so none of it matters.
_WITHOUT_EFFECT = """
addkeystoagent batchmode canonicaldomains canonicalizefallbacklocal canonicalizemaxdots
canonicalizepermittedcnames casignaturealgorithms challengeresponseauthentication channeltimeout
checkhostip cipher ciphers clearallforwardings compression compressionlevel connectionattempts
connecttimeout controlmaster controlpath controlpersist dsaauthentication dynamicforward
enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash
forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports
gssapiauthentication gssapiclientidentity gssapidelegatecredentials gssapikexalgorithms gssapikeyexchange
gssapirenewalforcesrekey gssapiserveridentity gssapitrustdns hashknownhosts hostbasedacceptedalgorithms
hostbasedauthentication hostbasedkeytypes hostkeyalgorithms ignoreunknown ipqos
kbdinteractiveauthentication kbdinteractivedevices keepalive kexalgorithms localcommand localforward
loglevel logverbose macs nohostauthenticationforlocalhost numberofpasswordprompts obscurekeystroketiming
passwordauthentication permitlocalcommand permitremoteopen preferredauthentications protocol
protocolkeepalives pubkeyacceptedalgorithms pubkeyacceptedkeytypes pubkeyauthentication refuseconnection
rekeylimit remotecommand remoteforward requesttty requiredrsasize rhostsauthentication
rhostsrsaauthentication rsaauthentication securitykeyprovider sendenv serveralivecountmax
serveraliveinterval sessiontype setenv setuptimeout skeyauthentication smartcarddevice stdinnull
streamlocalbindmask streamlocalbindunlink stricthostkeychecking syslogfacility tcpkeepalive
tisauthentication tunnel tunneldevice updatehostkeys useblacklistedkeys usekeychain useprivilegedport
useroaming usersh verifyhostkeydns versionaddendum visualhostkey warnweakcrypto xauthlocation
"""

WITHOUT_EFFECT = frozenset(_WITHOUT_EFFECT.split())
