{{/* Parts of all templates. Most take a dict: root (the context), name (such as "api-server"), key (of .Values), program. */}}

{{- define "ceems.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ceems.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "ceems.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ceems.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ceems.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "ceems.cluster" -}}
{{- default "ceems-k8s-0" .Values.clusterID -}}
{{- end -}}

{{/* The name of the objects of one program. */}}
{{- define "ceems.object" -}}
{{- printf "%s-%s" (include "ceems.fullname" .root) .name -}}
{{- end -}}

{{- define "ceems.selector" -}}
app.kubernetes.io/name: {{ include "ceems.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "ceems.labels" -}}
{{ include "ceems.selector" . }}
app.kubernetes.io/part-of: {{ include "ceems.name" .root }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{- define "ceems.metadata" -}}
name: {{ include "ceems.object" . }}
namespace: {{ include "ceems.namespace" .root }}
labels:
  {{- include "ceems.labels" . | nindent 2 }}
{{- end -}}

{{/* One image a program: REGISTRY/REPOSITORY/ceems-exporter:TAG. */}}
{{- define "ceems.image" -}}
{{- $values := index .root.Values .key -}}
{{- $image := .root.Values.image -}}
{{- if $values.image -}}
{{- $values.image -}}
{{- else -}}
{{- printf "%s/%s/%s:%s" (.root.Values.global.imageRegistry | default $image.registry) $image.repository .image ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "ceems.serviceAccount" -}}
{{- $account := (index .root.Values .key).serviceAccount -}}
{{- if $account.create -}}
{{- default (include "ceems.object" .) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end -}}

{{/* additionalArgs: a list of {name, value}, as flags. */}}
{{- define "ceems.arguments" -}}
{{- range . }}
- {{ if hasKey . "value" }}{{ printf "--%s=%v" .name .value | quote }}{{ else }}{{ printf "--%s" .name | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/* The password of one program: as given, else as in the cluster, else a new one. It is the same in all templates of one run. */}}
{{- define "ceems.password" -}}
{{- $made := .root.Values.auth.made | default dict -}}
{{- if not (hasKey $made .name) -}}
{{- $old := lookup "v1" "Secret" (include "ceems.namespace" .root) (printf "%s-auth" (include "ceems.object" .)) -}}
{{- if .root.Values.auth.password -}}
{{- $_ := set $made .name .root.Values.auth.password -}}
{{- else if and $old $old.data -}}
{{- $_ := set $made .name (index $old.data "password" | b64dec) -}}
{{- else -}}
{{- $_ := set $made .name (randAlphaNum 32) -}}
{{- end -}}
{{- $_ := set .root.Values.auth "made" $made -}}
{{- end -}}
{{- index $made .name -}}
{{- end -}}

{{/* "yes" if the chart gives the program a password: its web configuration asks for neither a password nor a client certificate. */}}
{{- define "ceems.guarded" -}}
{{- $web := (index .root.Values .key).webConfig | default dict -}}
{{- $tls := $web.tls_server_config | default dict -}}
{{- if and .root.Values.auth.generate (not $web.basic_auth_users) (not (has ($tls.client_auth_type | default "") (list "RequireAndVerifyClientCert" "RequireAnyClientCert"))) -}}
yes
{{- end -}}
{{- end -}}

{{- define "ceems.webConfig" -}}
{{- $web := deepCopy ((index .root.Values .key).webConfig | default dict) -}}
{{- if include "ceems.guarded" . -}}
{{- $line := htpasswd .root.Values.auth.username (include "ceems.password" .) -}}
{{- $_ := set $web "basic_auth_users" (dict .root.Values.auth.username (regexReplaceAll "^[^:]*:" $line "")) -}}
{{- end -}}
{{- toYaml $web -}}
{{- end -}}

{{- define "ceems.scheme" -}}
{{- $web := (index .root.Values .key).webConfig | default dict -}}
{{- ternary "https" "http" (not (empty $web.tls_server_config)) -}}
{{- end -}}

{{/* Secrets: web-config.yml, and beside it name and password in plain text for those who ask the program. */}}
{{- define "ceems.webSecrets" -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "ceems.object" . }}-web
  namespace: {{ include "ceems.namespace" .root }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
stringData:
  web-config.yml: |
    {{- include "ceems.webConfig" . | nindent 4 }}
{{- if include "ceems.guarded" . }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "ceems.object" . }}-auth
  namespace: {{ include "ceems.namespace" .root }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
type: kubernetes.io/basic-auth
stringData:
  username: {{ .root.Values.auth.username | quote }}
  password: {{ include "ceems.password" . | quote }}
{{- end }}
{{- end -}}

{{- define "ceems.accountObject" -}}
{{- $account := (index .root.Values .key).serviceAccount -}}
{{- if $account.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "ceems.serviceAccount" . }}
  namespace: {{ include "ceems.namespace" .root }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
  {{- with $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end -}}
{{- end -}}

{{/* A role for the whole cluster, and extraClusterRoleRules. `rules` are YAML. */}}
{{- define "ceems.clusterRole" -}}
{{- $rbac := (index .root.Values .key).rbac -}}
{{- if and $rbac.create (or .rules $rbac.extraClusterRoleRules) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "ceems.namespace" .root }}-{{ include "ceems.object" . }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
rules:
  {{- with .rules }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $rbac.extraClusterRoleRules }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "ceems.namespace" .root }}-{{ include "ceems.object" . }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "ceems.namespace" .root }}-{{ include "ceems.object" . }}
subjects:
  - kind: ServiceAccount
    name: {{ include "ceems.serviceAccount" . }}
    namespace: {{ include "ceems.namespace" .root }}
{{- end -}}
{{- end -}}

{{/* ports: a list of {name, port}. */}}
{{- define "ceems.service" -}}
{{- $service := (index .root.Values .key).service -}}
{{- if $service.enabled -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "ceems.metadata" . | nindent 2 }}
    {{- with $service.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type }}
  {{- with $service.clusterIP }}
  clusterIP: {{ . }}
  {{- end }}
  {{- with $service.externalTrafficPolicy }}
  externalTrafficPolicy: {{ . }}
  {{- end }}
  {{- with $service.internalTrafficPolicy }}
  internalTrafficPolicy: {{ . }}
  {{- end }}
  {{- if $service.ipDualStack.enabled }}
  ipFamilies: {{ toJson $service.ipDualStack.ipFamilies }}
  ipFamilyPolicy: {{ $service.ipDualStack.ipFamilyPolicy }}
  {{- end }}
  selector:
    {{- include "ceems.selector" . | nindent 4 }}
  ports:
    {{- range $index, $port := .ports }}
    - name: {{ $port.name }}
      port: {{ if and (eq $index 0) $service.servicePort }}{{ $service.servicePort }}{{ else }}{{ $port.port }}{{ end }}
      targetPort: {{ $port.name }}
      protocol: TCP
      {{- if and (eq $index 0) $service.nodePort (ne $service.type "ClusterIP") }}
      nodePort: {{ $service.nodePort }}
      {{- end }}
    {{- end }}
{{- end -}}
{{- end -}}

{{/* Who may reach the ports: by default the pods of this namespace and those of networkPolicy.from. */}}
{{- define "ceems.networkPolicy" -}}
{{- $policy := (index .root.Values .key).networkPolicy -}}
{{- if $policy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "ceems.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "ceems.selector" . | nindent 6 }}
  policyTypes: [Ingress{{ if or $policy.egress .noEgress }}, Egress{{ end }}]
  ingress:
    {{- if $policy.ingress }}
    {{- toYaml $policy.ingress | nindent 4 }}
    {{- else }}
    - ports:
        {{- range .ports }}
        - port: {{ .port }}
          protocol: TCP
        {{- end }}
      {{- if not .anybody }}
      from:
        - podSelector: {}
        {{- with .root.Values.networkPolicy.from }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- with $policy.egress }}
  egress:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "ceems.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "ceems.metadata" . | nindent 2 }}
spec:
  minAvailable: 1
  selector:
    matchLabels:
      {{- include "ceems.selector" . | nindent 6 }}
{{- end -}}

{{/* ServiceMonitor of Prometheus' operator, where the cluster knows it. ports: names. */}}
{{- define "ceems.monitor" -}}
{{- $values := index .root.Values .key -}}
{{- $monitor := ($values.prometheus | default dict).monitor | default dict -}}
{{- if and $monitor.enabled $values.service.enabled (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1") -}}
apiVersion: {{ default "monitoring.coreos.com/v1" $monitor.apiVersion }}
kind: ServiceMonitor
metadata:
  name: {{ include "ceems.object" . }}
  namespace: {{ default (include "ceems.namespace" .root) $monitor.namespace }}
  labels:
    {{- include "ceems.labels" . | nindent 4 }}
    {{- with $monitor.additionalLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  jobLabel: {{ default "app.kubernetes.io/component" $monitor.jobLabel }}
  {{- with $monitor.podTargetLabels }}
  podTargetLabels: {{ toJson . }}
  {{- end }}
  {{- with $monitor.targetLabels }}
  targetLabels: {{ toJson . }}
  {{- end }}
  namespaceSelector:
    matchNames: [{{ include "ceems.namespace" .root }}]
  selector:
    matchLabels:
      {{- include "ceems.selector" . | nindent 6 }}
  endpoints:
    {{- range .ports }}
    - port: {{ .name }}
      scheme: {{ include "ceems.scheme" $ }}
      honorLabels: true
      interval: {{ default "30s" $monitor.interval }}
      scrapeTimeout: {{ default "10s" $monitor.scrapeTimeout }}
      {{- if $monitor.basicAuth }}
      basicAuth:
        {{- toYaml $monitor.basicAuth | nindent 8 }}
      {{- else if include "ceems.guarded" $ }}
      basicAuth:
        username: {name: {{ include "ceems.object" $ }}-auth, key: username}
        password: {name: {{ include "ceems.object" $ }}-auth, key: password}
      {{- end }}
      {{- with $monitor.tlsConfig }}
      tlsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.authorization }}
      authorization:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $monitor.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
{{- end -}}
{{- end -}}
