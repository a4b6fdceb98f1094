{{/* What things are called. */}}
{{- define "ropeway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of pods and of the labels made from them have to fit into 63 characters. */}}
{{- define "ropeway.fullname" -}}
{{- $name := include "ropeway.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ropeway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ropeway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "ropeway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ropeway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Of the pod that `helm test` starts, which no Service may select. */}}
{{- define "ropeway.testLabels" -}}
app.kubernetes.io/name: {{ include "ropeway.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ropeway.labels" -}}
{{ include "ropeway.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ropeway.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "ropeway.brokers" -}}
{{- if eq .Values.storage "pulsar" }}{{ .Values.brokers }}{{ else }}1{{ end -}}
{{- end -}}

{{- define "ropeway.nodesPerBroker" -}}
{{- if eq .Values.storage "pulsar" }}{{ .Values.nodesPerBroker }}{{ else }}1{{ end -}}
{{- end -}}

{{/* What comes behind a pod's name in the name of its Service. */}}
{{- define "ropeway.domain" -}}
{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* How the `ropeway` command reaches the node beside it, or from the test pod any. */}}
{{- define "ropeway.clientEnvironment" -}}
{{- if .Values.acl.existingSecret }}
- name: ROPEWAY_ACCESS_KEY
  value: {{ .Values.acl.superuser | quote }}
- name: ROPEWAY_SECRET_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.acl.existingSecret }}
      key: password
{{- end }}
{{- if and .Values.tls.existingSecret .Values.tls.required }}
- name: ROPEWAY_TLS
  value: "true"
- name: ROPEWAY_TLS_CA
  value: /etc/ropeway/tls/ca.crt
{{- if ne .Values.tls.clientCertificates "none" }}
- name: ROPEWAY_TLS_CERT
  value: /etc/ropeway/tls/tls.crt
- name: ROPEWAY_TLS_KEY
  value: /etc/ropeway/tls/tls.key
{{- end }}
{{- end }}
{{- end -}}
