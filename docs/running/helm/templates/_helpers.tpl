{{- define "tollhouse.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "tollhouse.host" -}}
{{ regexReplaceAll "^https?://([^/:]+).*$" .Values.settings.GATEWAY_BASE_URL "${1}" }}
{{- end -}}

{{- define "tollhouse.labels" -}}
app.kubernetes.io/name: tollhouse
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Of (root, program): what the selector of a program's pods is. */}}
{{- define "tollhouse.selector" -}}
app.kubernetes.io/name: tollhouse
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .program }}
{{- end -}}

{{/* Of (root, program, arguments): the pod of one program. Only web is asked for its health. */}}
{{- define "tollhouse.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "tollhouse.selector" . | nindent 4 }}
  annotations:
    checksum/settings: {{ toJson $values.settings | sha256sum }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: 40
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .program }}
      image: {{ include "tollhouse.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        {{- toYaml .arguments | nindent 8 }}
      envFrom:
        - configMapRef:
            name: {{ .root.Release.Name }}-settings
        - secretRef:
            name: {{ $values.existingSecret }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- if eq .program "web" }}
      ports:
        - name: http
          containerPort: 8000
      {{- $headers := printf "[{name: Host, value: %s}, {name: X-Forwarded-Proto, value: https}]" (include "tollhouse.host" .root) }}
      startupProbe:
        httpGet: {path: /health/live, port: http, httpHeaders: {{ $headers }}}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /health/live, port: http, httpHeaders: {{ $headers }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /health/ready, port: http, httpHeaders: {{ $headers }}}
        periodSeconds: 3
        timeoutSeconds: 3
        failureThreshold: 3
      lifecycle:
        preStop:
          exec:
            # The service's other machines have to hear of it before it takes no more.
            command: [python, -c, "import time; time.sleep(5)"]
      {{- end }}
      {{- with .resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: work, mountPath: /var/lib/tollhouse}
        - {name: tmp, mountPath: /tmp}
        - {name: memory, mountPath: /dev/shm}
  volumes:
    - name: work
      {{- if $values.work.existingClaim }}
      persistentVolumeClaim:
        claimName: {{ $values.work.existingClaim }}
      {{- else }}
      emptyDir: {}
      {{- end }}
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 256Mi}
    - name: memory
      emptyDir: {medium: Memory, sizeLimit: 64Mi}
  {{- if $values.spread }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tollhouse.selector" . | nindent 10 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
