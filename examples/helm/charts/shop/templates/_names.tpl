{{- define "shop.secret" -}}
{{ default (printf "%s-database" .Release.Name) .Values.database.existingSecret }}
{{- end }}
