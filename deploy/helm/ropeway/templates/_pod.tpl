{{/* Secrets that a pod has as files, as YAML: directories of /etc/ropeway with names. */}}
{{- define "ropeway.secrets" -}}
{{- $secrets := dict -}}
{{- with .Values.tls.existingSecret }}{{ $_ := set $secrets "tls" . }}{{ end -}}
{{- with .Values.acl.existingSecret }}{{ $_ := set $secrets "acl" . }}{{ end -}}
{{- with .Values.clusterSecret.name }}{{ $_ := set $secrets "cluster" . }}{{ end -}}
{{- if eq .Values.storage "pulsar" -}}
{{- with .Values.pulsar.tokenSecret.name }}{{ $_ := set $secrets "pulsar-token" . }}{{ end -}}
{{- with .Values.pulsar.caSecret.name }}{{ $_ := set $secrets "pulsar-ca" . }}{{ end -}}
{{- with .Values.zookeeper.passwordSecret.name }}{{ $_ := set $secrets "zookeeper" . }}{{ end -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end -}}

{{/* How the http port is asked, by the table http of the settings. */}}
{{- define "ropeway.httpScheme" -}}
{{- $http := (include "ropeway.settings" . | fromYaml).http -}}
http{{ if $http.tls }}s{{ end }}
{{- end -}}

{{- define "ropeway.probe" -}}
{{- $get := dict "path" .path "port" "http" "scheme" (include "ropeway.httpScheme" .root | upper) -}}
{{- mergeOverwrite (dict "httpGet" $get) .given (deepCopy .over) | toYaml -}}
{{- end -}}

{{- define "ropeway.affinity" -}}
{{- if .root.Values.affinity -}}
{{- toYaml .root.Values.affinity -}}
{{- else if ne .root.Values.antiAffinity "none" -}}
{{- $labels := merge (dict "app.kubernetes.io/component" .broker) (include "ropeway.selectorLabels" .root | fromYaml) -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
podAntiAffinity:
{{- if eq .root.Values.antiAffinity "hard" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - {{ toYaml $term | nindent 6 | trim }}
{{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm: {{ toYaml $term | nindent 8 }}
{{- end }}
{{- end -}}
{{- end -}}
