{{- define "lychgate.name" -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "lychgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lychgate.labels" -}}
{{ include "lychgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "lychgate.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{- define "lychgate.isPostgres" -}}
{{ if eq .Values.store.kind "postgres" }}yes{{ end }}
{{- end -}}

{{/* What the server and the migrations have in common: the Pod, as the standard "restricted" wants it. */}}
{{- define "lychgate.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "lychgate.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- define "lychgate.environment" -}}
- name: LYCHGATE_ISSUER
  value: {{ required "issuer: the public https URL" .Values.issuer | quote }}
- name: LYCHGATE_CONFIG
  value: /etc/lychgate/lychgate.yaml
- name: LYCHGATE_SECRET_FILE
  value: /run/secrets/lychgate/secret
{{- if include "lychgate.isPostgres" . }}
- name: LYCHGATE_STORE_FILE
  value: /run/secrets/lychgate/store
{{- end }}
{{- with .Values.trustProxy }}
- name: LYCHGATE_TRUST_PROXY
  value: {{ join "," . | quote }}
{{- end }}
{{- if .Values.metrics.enabled }}
- name: LYCHGATE_MANAGEMENT_PORT
  value: {{ .Values.metrics.port | quote }}
- name: LYCHGATE_MANAGEMENT_HOST
  value: 0.0.0.0
{{- end }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "lychgate.mounts" -}}
- name: config
  mountPath: /etc/lychgate
  readOnly: true
- name: secrets
  mountPath: /run/secrets/lychgate
  readOnly: true
- name: data
  mountPath: /data
{{- end -}}

{{/* `data` is empty with PostgreSQL: nothing is written there. */}}
{{- define "lychgate.volumes" -}}
- name: config
  configMap:
    name: {{ include "lychgate.name" . }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .Values.secret.name }}
          items:
            - key: {{ .Values.secret.key }}
              path: secret
      {{- if include "lychgate.isPostgres" . }}
      - secret:
          name: {{ .Values.store.postgres.name }}
          items:
            - key: {{ .Values.store.postgres.key }}
              path: store
      {{- end }}
{{- if include "lychgate.isPostgres" . }}
- name: data
  emptyDir:
    sizeLimit: 16Mi
{{- else }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.store.sqlite.existingClaim | default (include "lychgate.name" .) }}
{{- end }}
{{- end -}}
