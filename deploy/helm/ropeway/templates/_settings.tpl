{{/* The settings of the chart, with those of `config` over them, as YAML. */}}
{{- define "ropeway.settings" -}}
{{- range list "data" "broker" "node" "replication_num" "listeners" "routes" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s is set by the chart; see docs/kubernetes.md" .) -}}
{{- end -}}
{{- end -}}
{{- $http := dict "host" (.Values.listenAddress | trimPrefix "[" | trimSuffix "]") "port" .Values.http.port -}}
{{- $settings := dict "data" "/data/ropeway" "http" $http -}}
{{- with .Values.tls -}}
{{- if .existingSecret -}}
{{- $tls := dict "certificate" "/etc/ropeway/tls/tls.crt" "key" "/etc/ropeway/tls/tls.key" -}}
{{- if .required -}}
{{- $_ := set $tls "required" true -}}
{{- $_ := set $tls "nodes_ca" "/etc/ropeway/tls/ca.crt" -}}
{{- end -}}
{{- if ne .clientCertificates "none" -}}
{{- $_ := set $tls "client_ca" "/etc/ropeway/tls/ca.crt" -}}
{{- $_ := set $tls "client_certificate" .clientCertificates -}}
{{- end -}}
{{- $_ := set $settings "tls" $tls -}}
{{- end -}}
{{- end -}}
{{- with .Values.acl -}}
{{- if .existingSecret -}}
{{- $users := dict "superuser" .superuser "superuser_password_file" "/etc/ropeway/acl/password" -}}
{{- $acl := dict "hooks" (list "users") "key_file" "/etc/ropeway/acl/key" "options" (dict "users" $users) -}}
{{- $_ := set $settings "acl" $acl -}}
{{- end -}}
{{- end -}}
{{- with .Values.clusterSecret -}}
{{- if .name -}}
{{- $_ := set $settings "cluster_secret_file" (printf "/etc/ropeway/cluster/%s" .key) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.storage "pulsar" -}}
{{- with .Values.pulsar -}}
{{- $pulsar := dict "service_url" .serviceUrl "admin_url" .adminUrl -}}
{{- if .tokenSecret.name -}}
{{- $_ := set $pulsar "token_file" (printf "/etc/ropeway/pulsar-token/%s" .tokenSecret.key) -}}
{{- end -}}
{{- if .caSecret.name -}}
{{- $_ := set $pulsar "ca_certificate" (printf "/etc/ropeway/pulsar-ca/%s" .caSecret.key) -}}
{{- end -}}
{{- $_ := set $settings "pulsar" $pulsar -}}
{{- end -}}
{{- with .Values.zookeeper -}}
{{- $_ := set $settings "routes" (printf "zookeeper://%s%s" .servers .path) -}}
{{- if .passwordSecret.name -}}
{{- $file := printf "/etc/ropeway/zookeeper/%s" .passwordSecret.key -}}
{{- $_ := set $settings "zookeeper" (dict "user" .user "password_file" $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite $settings (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* Settings as TOML: what is no table, and then the tables. */}}
{{- define "ropeway.toml" -}}
{{- $settings := include "ropeway.settings" . | fromYaml -}}
{{- range $key, $value := $settings }}
{{- if not (kindIs "map" $value) }}
{{ $key }} = {{ include "ropeway.toml.value" $value }}
{{- end }}
{{- end }}
{{- range $key, $value := $settings }}
{{- if kindIs "map" $value }}

[{{ $key }}]
{{- range $name, $one := $value }}
{{ $name }} = {{ include "ropeway.toml.value" $one }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Helm's own toToml writes whole numbers as 9876.0, which no setting takes. */}}
{{- define "ropeway.toml.value" -}}
{{- if kindIs "map" . -}}
{{- $items := list -}}
{{- range $key, $value := . -}}
{{- $items = append $items (printf "%s = %s" (toJson $key) (include "ropeway.toml.value" $value)) -}}
{{- end -}}
{ {{- join ", " $items -}} }
{{- else if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . -}}
{{- $items = append $items (include "ropeway.toml.value" .) -}}
{{- end -}}
[{{ join ", " $items }}]
{{- else if kindIs "string" . -}}
{{ toRawJson . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{ printf "%.0f" . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}
