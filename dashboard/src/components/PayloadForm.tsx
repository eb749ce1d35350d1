/** Payload form with one field per property of the schema. Large fields come last. */
import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { stringifyExact, escapeInvisible } from "../lib/json";
import type { Field } from "../lib/payloadFields";

interface Props {
  fields: readonly Field[];
  texts: Readonly<Record<string, string>>;
  problems: Readonly<Record<string, string>>;
  onChange: (name: string, text: string) => void;
}

export function PayloadForm({ fields, texts, problems, onChange }: Props) {
  return (
    <div className="fields" role="group" aria-label="Payload">
      {[...fields].sort((a, b) => Number(a.kind === "json") - Number(b.kind === "json")).map((field) => {
        const shared = {
          label: field.name,
          description: field.description || undefined,
          error: problems[field.name],
          // Not the browser's `required`: an empty nullable field means null, and errors are shown below the field.
          withAsterisk: field.required,
          value: texts[field.name] ?? "",
          onChange: (event: { currentTarget: { value: string } }) => onChange(field.name, event.currentTarget.value),
        };
        if (field.kind === "switch" || field.kind === "choice") {
          const options = field.kind === "switch" ? [true, false] : field.options;
          return (
            <NativeSelect
              key={field.name}
              {...shared}
              data={[
                { value: "", label: placeholder(field) },
                ...options.map((option) => ({ value: stringifyExact(option), label: escapeInvisible(typeof option === "string" ? option : stringifyExact(option)) })),
                ...(field.nullable ? [{ value: "null", label: "null" }] : []),
              ]}
            />
          );
        }
        if (field.kind === "json") {
          return <Textarea key={field.name} {...shared} className="whole-line" rows={4} spellCheck={false} placeholder={field.shape === "array" ? "[]" : field.shape === "object" ? "{}" : placeholder(field)} classNames={{ input: "mono" }} />;
        }
        return <TextInput key={field.name} {...shared} placeholder={placeholder(field)} inputMode={field.kind === "text" ? undefined : field.kind === "integer" ? "numeric" : "decimal"} autoComplete="off" spellCheck={false} />;
      })}
    </div>
  );
}

/** Placeholder that shows what an empty field means. */
function placeholder(field: Field): string {
  if (field.defaultText !== undefined) return `default: ${field.defaultText}`;
  if (field.required) return field.nullable ? "null" : "";
  return "omitted";
}
