/** The fields of a payload, one for each part that the type's schema names; those that take much room come last. */
import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import { stringifyExact, visible } from "../lib/json";
import type { Field } from "../lib/schema";

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
          // Not `required` of the browser: an empty field of a nullable part is null, and what is wrong is said below it.
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
                { value: "", label: empty(field) },
                ...options.map((option) => ({ value: stringifyExact(option), label: visible(typeof option === "string" ? option : stringifyExact(option)) })),
                ...(field.nullable ? [{ value: "null", label: "null" }] : []),
              ]}
            />
          );
        }
        if (field.kind === "json") {
          return <Textarea key={field.name} {...shared} className="whole-line" rows={4} spellCheck={false} placeholder={field.shape === "array" ? "[]" : field.shape === "object" ? "{}" : empty(field)} classNames={{ input: "mono" }} />;
        }
        return <TextInput key={field.name} {...shared} placeholder={empty(field)} inputMode={field.kind === "text" ? undefined : field.kind === "integer" ? "numeric" : "decimal"} autoComplete="off" spellCheck={false} />;
      })}
    </div>
  );
}

/** What holds if nothing is given. */
function empty(field: Field): string {
  if (field.otherwise !== undefined) return `default: ${field.otherwise}`;
  if (field.required) return field.nullable ? "null" : "";
  return "left out";
}
