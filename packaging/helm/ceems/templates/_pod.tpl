{{/* The metadata of a pod. `checksum` restarts pods whose program reads a file only when it starts. */}}
{{- define "ceems.podMetadata" -}}
{{- $values := index .root.Values .key -}}
{{- if or $values.podAnnotations .checksum }}
annotations:
  {{- with .checksum }}
  checksum/config: {{ . | sha256sum }}
  {{- end }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
labels:
  {{- include "ceems.labels" . | nindent 2 }}
  {{- with $values.podLabels }}
  {{- tpl (toYaml .) $.root | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What pods of all programs have: accounts, places, privileges. `token`: whether the program asks the API server of Kubernetes. */}}
{{- define "ceems.podSpec" -}}
{{- $values := index .root.Values .key -}}
{{- $secrets := concat (.root.Values.global.imagePullSecrets | default list) ($values.imagePullSecrets | default list) -}}
serviceAccountName: {{ include "ceems.serviceAccount" . }}
automountServiceAccountToken: {{ and .token (ne $values.serviceAccount.automountServiceAccountToken false) }}
{{- with $secrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ if kindIs "string" . }}{{ . }}{{ else }}{{ .name }}{{ end }}
  {{- end }}
{{- end }}
{{- with $values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- if $values.hostPID }}
hostPID: true
{{- end }}
{{- if $values.hostIPC }}
hostIPC: true
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.terminationGracePeriodSeconds }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.affinity }}
affinity:
  {{- toYaml $values.affinity | nindent 2 }}
{{- else if .spread }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "ceems.selector" . | nindent 14 }}
{{- end }}
{{- with $values.extraInitContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The program asks itself whether it answers: with a password, kubelet could not. */}}
{{- define "ceems.probes" -}}
{{- $values := index .root.Values .key -}}
{{- range $kind := list "livenessProbe" "readinessProbe" }}
{{ $kind }}:
  exec:
    command: [/usr/bin/{{ $.program }}, --health{{ range $.listen }}, "--web.listen-address={{ . }}"{{ end }}, --web.config.file=/etc/{{ $.program }}/web/web-config.yml]
  {{- toYaml (index $values $kind) | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "ceems.container" -}}
{{- $values := index .root.Values .key -}}
name: {{ .name }}
image: {{ include "ceems.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with $values.containerSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- range .ports }}
  - name: {{ .name }}
    containerPort: {{ .port }}
    protocol: TCP
  {{- end }}
{{- end -}}

{{- define "ceems.environment" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* Files that the site adds: extraVolumeMounts, configmaps, secrets; and their volumes. */}}
{{- define "ceems.extraMounts" -}}
{{- $values := index .root.Values .key -}}
{{- range concat ($values.configmaps | default list) ($values.secrets | default list) }}
- name: {{ tpl .name $.root }}
  mountPath: {{ .mountPath }}
  readOnly: true
{{- end }}
{{- range $values.extraHostVolumeMounts }}
- name: {{ .name }}
  mountPath: {{ .mountPath }}
  readOnly: {{ ne .readOnly false }}
  {{- with .mountPropagation }}
  mountPropagation: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ceems.extraVolumes" -}}
{{- $values := index .root.Values .key -}}
{{- range $values.configmaps }}
- name: {{ tpl .name $.root }}
  configMap:
    name: {{ tpl .name $.root }}
{{- end }}
{{- range $values.secrets }}
- name: {{ tpl .name $.root }}
  secret:
    secretName: {{ tpl .name $.root }}
{{- end }}
{{- range $values.extraHostVolumeMounts }}
- name: {{ .name }}
  hostPath:
    path: {{ .hostPath }}
    {{- with .type }}
    type: {{ . }}
    {{- end }}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
