{{- define "fila.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "fila.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fila.labels" -}}
{{ include "fila.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "fila.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "fila.pod-security" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "fila.container-security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What refuses a mistake before anything is installed. */ -}}
{{- define "fila.refuse" -}}
{{- if ne (int .Values.replicas) 1 }}
{{- fail (printf "replicas: %v: one broker is one process with one volume, and two would share it; leave it at 1" .Values.replicas) }}
{{- end }}
{{- if and .Values.tls.requireClientCertificate (not .Values.tls.secretName) }}
{{- fail "tls.requireClientCertificate needs tls.secretName, whose ca.crt says whom to trust" }}
{{- end }}
{{- with .Values.persistence.existingClaim }}
{{- $claim := . }}
{{- range (lookup "apps/v1" "StatefulSet" $.Release.Namespace "").items }}
{{- $other := dig "labels" "app.kubernetes.io/instance" .metadata.name .metadata }}
{{- if ne $other $.Release.Name }}
{{- range dig "template" "spec" "volumes" list .spec }}
{{- if eq (dig "persistentVolumeClaim" "claimName" "" .) $claim }}
{{- fail (printf "persistence.existingClaim: the release %s has the claim %s already, and one volume is of one broker; give this release a claim of its own" $other $claim) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name := list "http" "console" }}
{{- $part := index $.Values $name }}
{{- if and $part.enabled (not $part.hosts) }}
{{- fail (printf "%s.hosts is empty: name the hosts by which callers reach it, or nobody is served" $name) }}
{{- end }}
{{- end }}
{{- end }}
