"""Templates in the manner of today's families of models, written for these tests, and conversations to render. None is a
model's own: they use the same constructs."""
import itertools
import random

CHATML = """
{%- for message in messages %}
{%- if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nBe of help.<|im_end|>\\n' }}{% endif %}
{{- '<|im_start|>' + message['role'] + '\\n' + (message.content if message.content is string else message.content | tojson) + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""

# Dates, tools in the first user message or the system message, calls as JSON.
LLAMA_3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user_message is defined %}
    {%- set tools_in_user_message = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "1 Jan 2025" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message is taken out, to be shown in its own place #}
{%- if messages[0]['role'] == 'system' %}
    {%- if messages[0]['content'] is string %}
        {%- set system_message = messages[0]['content'] | trim %}
    {%- else %}
        {%- set system_message = messages[0]['content'][0]['text'] | trim %}
    {%- endif %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: here\\n" }}{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- "Functions that you can call:\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot|>" }}
{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content'] %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("There is no first user message for the tools") }}
    {%- endif %}
    {{- '<|head|>user<|/head|>\\n\\n' -}}
    {{- 'Answer with {"name": function, "parameters": dict}.\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message if first_user_message is string else first_user_message | map(attribute='text') | select('string') | join + "<|eot|>" }}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n' }}
        {%- if message['content'] is string %}
            {{- message['content'] | trim }}
        {%- else %}
            {%- for part in message['content'] or [] %}
                {%- if part['type'] == 'image' %}{{- '<|image|>' }}{%- elif part['type'] == 'text' %}{{- part['text'] | trim }}{%- endif %}
            {%- endfor %}
        {%- endif %}
        {{- '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("One call at a time, please") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|head|>assistant<|/head|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|head|>ipython<|/head|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|head|>assistant<|/head|>\\n\\n' }}
{%- endif %}
"""

# Strict turns, counted in a namespace; the tools stand before the last user message.
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("user and assistant must take turns after the system message") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val | tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function | tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id | length != 9 %}
                {{- raise_exception("A call's id has nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] | trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULTS] {"content": ' + content | string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/RESULTS]' }}
    {%- else %}
        {{- raise_exception("Nobody has the role " + message.role) }}
    {%- endif %}
{%- endfor %}
"""

GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must take turns user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Content of no known kind") }}
    {%- endif -%}
    {{ '</turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<turn>model\\n' }}
{%- endif -%}
"""

# Thinking is kept behind the last question only, which is looked for from the end.
QWEN_3 = """
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Functions\\n\\nTheir signatures are inside <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nCall like this:\\n<tool_call>\\n{\\"name\\": <function-name>, \\"arguments\\": <args-json-object>}\\n</tool_call><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

# Flags in a namespace, one line, no trimming wanted.
DEEPSEEK = (
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
    "{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}"
    "{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}"
    "{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}"
    "{{ bos_token }}{{ ns.system_prompt }}"
    "{%- for message in messages %}"
    "{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + (message['content'] | string)}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}"
    "{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}"
    "{%- if message['content'] is none or not message['content'] %}{{'<｜Assistant｜><｜calls｜><｜call｜>' + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + (tool['function']['arguments'] | tojson) + '\\n' + '```' + '<｜/call｜>'}}"
    "{%- else %}{{'<｜Assistant｜>' + message['content'] | string + '<｜calls｜><｜call｜>' + tool['type'] + '<｜/call｜>'}}{%- endif %}"
    "{%- set ns.is_first = true -%}{%- else %}{{'\\n' + '<｜call｜>' + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '<｜/call｜>'}}{%- endif %}{%- endfor %}"
    "{{'<｜/calls｜><｜end｜>'}}{%- endif %}"
    "{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- if ns.is_tool %}"
    "{{'<｜/outputs｜>' + message['content'] + '<｜end｜>'}}{%- set ns.is_tool = false -%}"
    "{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{'<｜Assistant｜>' + content + '<｜end｜>'}}{%- endif %}{%- endif %}"
    "{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}"
    "{%- if ns.is_output_first %}{{'<｜outputs｜><｜output｜>' + (message['content'] | string) + '<｜/output｜>'}}{%- set ns.is_output_first = false %}"
    "{%- else %}{{'\\n<｜output｜>' + (message['content'] | string) + '<｜/output｜>'}}{%- endif %}{%- endif %}"
    "{%- endfor -%}{% if ns.is_tool %}{{'<｜/outputs｜>'}}{% endif %}"
    "{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}")

# Macros that call themselves on the types of parameters; channels.
HARMONY = """
{#- Types as TypeScript has them #}
{%- macro render_type(spec, required, nullable=false) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}
            {%- if spec['items']['type'] == "string" -%}
                {{- "string[]" }}
            {%- elif spec['items']['type'] in ("number", "integer") -%}
                {{- "number[]" }}
            {%- else -%}
                {%- set inner = render_type(spec['items'], required) -%}
                {%- if inner == "object" or inner | length > 50 -%}
                    {{- "any[]" }}
                {%- else -%}
                    {{- inner + "[]" }}
                {%- endif -%}
            {%- endif -%}
        {%- else -%}
            {{- "any[]" }}
        {%- endif -%}
        {%- if nullable -%}{{- " | null" -}}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping and spec.type[0] is defined -%}
        {{- spec.type | join(" | ") }}
    {%- elif spec.oneOf -%}
        {%- for variant in spec.oneOf -%}
            {{- render_type(variant, required) -}}
            {%- if variant.description %}{{- "// " + variant.description }}{%- endif -%}
            {%- if variant.default is defined %}{{ "// default: " + variant.default | tojson }}{%- endif -%}
            {%- if not loop.last %}{{- " | " }}{% endif -%}
        {%- endfor -%}
    {%- elif spec.type == "string" -%}
        {%- if spec.enum -%}{{- '"' + spec.enum | join('" | "') + '"' -}}{%- else -%}{{- "string" }}{%- if spec.nullable %}{{- " | null" -}}{%- endif -%}{%- endif -%}
    {%- elif spec.type in ["number", "integer"] -%}
        {{- "number" }}
    {%- elif spec.type == "boolean" -%}
        {{- "boolean" }}
    {%- elif spec.type == "object" -%}
        {%- if spec.properties -%}
            {{- "{\\n" }}
            {%- for name, prop in spec.properties.items() -%}
                {{- name -}}
                {%- if name not in (spec.required or []) -%}{{- "?" }}{%- endif -%}
                {{- ": " }}
                {{ render_type(prop, spec.required or []) }}
                {%- if not loop.last -%}{{-", " }}{%- endif -%}
            {%- endfor -%}
            {{- "}" }}
        {%- else -%}
            {{- "object" }}
        {%- endif -%}
    {%- else -%}
        {{- "any" }}
    {%- endif -%}
{%- endmacro -%}

{%- macro render_tools(namespace_name, tools) -%}
    {{- "## " + namespace_name + "\\n\\n" }}
    {{- "namespace " + namespace_name + " {\\n\\n" }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + tool.description + "\\n" }}
        {{- "type "+ tool.name + " = " }}
        {%- if tool.parameters and tool.parameters.properties %}
            {{- "(_: {\\n" }}
            {%- for name, spec in tool.parameters.properties.items() %}
                {%- if spec.description %}{{- "// " + spec.description + "\\n" }}{%- endif %}
                {{- name }}
                {%- if name not in (tool.parameters.required or []) -%}{{- "?" }}{%- endif -%}
                {{- ": " }}
                {{- render_type(spec, tool.parameters.required or []) }}
                {%- if spec.default is defined -%}
                    {%- if spec.enum %}
                        {{- ", // default: " + spec.default }}
                    {%- elif spec.oneOf %}
                        {{- "// default: " + spec.default }}
                    {%- else %}
                        {{- ", // default: " + spec.default|tojson }}
                    {%- endif -%}
                {%- endif -%}
                {%- if not loop.last %}{{- ",\\n" }}{%- else %}{{- "\\n" }}{%- endif -%}
            {%- endfor %}
            {{- "}) => any;\\n\\n" }}
        {%- else -%}
            {{- "() => any;\\n\\n" }}
        {%- endif -%}
    {%- endfor %}
    {{- "} // namespace " + namespace_name }}
{%- endmacro -%}

{%- macro system_message() -%}
    {%- if model_identity is not defined %}{%- set model_identity = "You are a model of these tests." %}{%- endif %}
    {{- model_identity + "\\n" }}
    {{- "Today: " + strftime_now("%Y-%m-%d") + "\\n\\n" }}
    {%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}{%- endif %}
    {{- "Reasoning: " + reasoning_effort + "\\n\\n" }}
    {{- "# Channels: analysis, commentary, final." }}
    {%- if tools -%}{{- "\\nCalls go to 'commentary'." }}{%- endif -%}
{%- endmacro -%}

{{- "<|start|>system<|message|>" }}
{{- system_message() }}
{{- "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}{{- "# Instructions\\n\\n" }}{{- developer_message }}{{- "\\n\\n" }}{%- endif %}
    {%- if tools -%}{{- "# Tools\\n\\n" }}{{- render_tools("functions", tools) }}{%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_tool_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message and message.content is string and "<|channel|>" in message.content %}
            {{- raise_exception("No tags in the content, please.") }}
        {%- endif %}
        {%- if "tool_calls" in message %}
            {%- set future_final_message = namespace(found=false) %}
            {%- for future_message in loop_messages[loop.index:] %}
                {%- if future_message.role == 'assistant' and "tool_calls" not in future_message %}
                    {%- set future_final_message.found = true %}
                {%- endif %}
            {%- endfor %}
            {%- set tool_call = message.tool_calls[0] %}
            {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
            {%- if message.content and message.thinking %}
                {{- raise_exception("Content or thinking, not both") }}
            {%- elif message.content and not future_final_message.found %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.content + "<|end|>" }}
            {%- elif message.thinking and not future_final_message.found %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}
            {%- endif %}
            {{- "<|start|>assistant to=" }}
            {{- "functions." + tool_call.name + "<|channel|>commentary " }}
            {{- (tool_call.content_type if tool_call.content_type is defined else "json") + "<|message|>" }}
            {{- tool_call.arguments|tojson }}
            {{- "<|call|>" }}
            {%- set last_tool_call.name = tool_call.name %}
        {%- elif loop.last and not add_generation_prompt %}
            {%- if "thinking" in message %}
                {{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}
            {%- endif %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|return|>" }}
        {%- else %}
            {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + "<|end|>" }}
            {%- set last_tool_call.name = none %}
        {%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_tool_call.name is none %}
            {{- raise_exception("A result without a call") }}
        {%- endif %}
        {{- "<|start|>functions." + last_tool_call.name }}
        {{- " to=assistant<|channel|>commentary<|message|>" + message.content|tojson + "<|end|>" }}
    {%- elif message.role == 'user' -%}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{%- endif -%}
"""

PHI = (
    "{% for message in messages %}{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}"
    "{% else %}{{ '<|' + message['role'] + '|>' + message['content'] ~ '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}")

# Text gathered in a block set, blank lines that matter, values of many kinds.
GRANITE = """{%- set tools_system_message_prefix = 'Functions are listed between <tools></tools>:\\n<tools>' %}
{%- set system = namespace(text='') %}
{%- if tools %}
{%- for tool in tools %}
{%- set tools_system_message_prefix = tools_system_message_prefix ~ '\\n' ~ (tool | tojson) %}
{%- endfor %}
{%- set ns = namespace(lines=[]) %}
{%- for tool in tools %}{% set ns.lines = ns.lines + [tool.function.name ~ ': ' ~ (tool.function.description | default('no words', true))] %}{% endfor %}
{%- set system.text = tools_system_message_prefix ~ '\\n' ~ ns.lines | join('\\n') ~ '\\n</tools>' %}
{%- endif %}
{%- set documents_text %}
{%- for document in documents or [] %}
<document id="{{ document.id | default(loop.index) }}">
{{ document.text | indent(2) }}
</document>
{% endfor %}
{%- endset %}
{%- if messages[0].role == 'system' %}
{%- set system.text = messages[0].content ~ ('\\n\\n' if system.text) ~ system.text %}
{%- endif %}
{%- if system.text or documents_text | trim %}
{{- '<|role|>system<|/role|>' ~ system.text ~ documents_text ~ '<|end|>\\n' }}
{%- endif %}
{%- for message in messages if not (loop_first_is_system and message.role == 'system') %}
    {%- set content = namespace(val='') %}
    {%- if message.content is string %}
        {%- set content.val = message.content %}
    {%- elif message.content is iterable %}
        {%- for entry in message.content if entry.type == 'text' %}
            {%- if content.val != '' %}{%- set content.val = content.val + '\\n' %}{%- endif %}
            {%- set content.val = content.val + entry.text %}
        {%- endfor %}
    {%- endif %}
    {%- if message.role == 'system' and loop.first %}
        {%- continue %}
    {%- elif message.role == 'assistant' %}
    {%- generation %}
        {{- '<|role|>' ~ message.role ~ '<|/role|>' ~ content.val }}
        {%- for tool_call in message.tool_calls or [] %}
            {%- if (loop.first and content.val) or not loop.first %}{{- '\\n' }}{%- endif %}
            {{- '<call>{"name": "' ~ tool_call.function.name ~ '", "arguments": ' ~ (tool_call.function.arguments if tool_call.function.arguments is string else tool_call.function.arguments | tojson(separators=(',', ':'), sort_keys=true)) ~ '}</call>' }}
        {%- endfor %}
        {{- '<|end|>\\n' }}
    {%- endgeneration %}
    {%- else %}
        {{- '<|role|>' ~ message.role ~ '<|/role|>' ~ content.val ~ '<|end|>\\n' }}
    {%- endif %}
    {%- if loop.last and add_generation_prompt %}{{- '<|role|>assistant<|/role|>' }}{%- endif %}
{%- endfor %}
"""

# Signatures of Python made of JSON schemas, with filters in macros.
COMMAND_R = """
{%- macro json_to_python_type(json_spec) %}
{%- set basic_type_map = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
{%- if json_spec.type is string and basic_type_map[json_spec.type] is defined %}
{{- basic_type_map[json_spec.type] }}
{%- elif json_spec.type == "array" %}
{{- "List[" + json_to_python_type(json_spec['items'] | default({})) + "]" }}
{%- elif json_spec.type == "object" %}
{%- if json_spec.additionalProperties is defined %}
{{- "Dict[str, " + json_to_python_type(json_spec.additionalProperties) + ']' }}
{%- else %}
{{- "Dict" }}
{%- endif %}
{%- elif json_spec.type is iterable and json_spec.type is not string and json_spec.type is defined %}
{{- "Union[" }}
{%- for t in json_spec.type %}
{{- json_to_python_type({"type": t}) }}
{%- if not loop.last %}{{- "," }}{%- endif %}
{%- endfor %}
{{- "]" }}
{%- else %}
{{- "Any" }}
{%- endif %}
{%- endmacro %}
{%- macro signature(tool) -%}
def {{ tool.name }}(
{%- for name, fields in (tool.parameters.properties or {}) | dictsort -%}
{{ name }}: {% if name not in (tool.parameters.required or []) %}Optional[{{ json_to_python_type(fields) }}] = {{ fields.default | default(none) }}{% else %}{{ json_to_python_type(fields) }}{% endif %}{{ ", " if not loop.last }}
{%- endfor -%}
) -> List[Dict]:
    \"\"\"{{ tool.description | default("") | capitalize | indent(4) }}
    {% for name, fields in tool.parameters.properties.items() if fields.description is defined %}
    {{ '%-8s' | format(name) }} ({{ '%s' % (fields.type) }}{{ ', optional' if name not in tool.parameters.required }}): {{ fields.description | trim | truncate(30) }}
    {% endfor %}\"\"\"
    pass
{%- endmacro -%}
{{ bos_token }}<|T|>system
{% set roles = {'user': 'USER', 'assistant': 'CHATBOT', 'system': 'SYSTEM', 'tool': 'SYSTEM'} -%}
{% for tool in tools or [] %}
```python
{{ signature(tool.function) }}
```{{ "\\n\\n" if not loop.last }}
{% endfor %}
{% for message in messages %}
<|T|>{{ roles.get(message.role, message.role | upper) }}
{% if message.tool_calls %}
Action: ```json
[
{% for call in message.tool_calls %}
    {
        "tool_name": {{ call.function.name | tojson }},
        "parameters": {{ call.function.arguments | tojson(indent=2) | indent(8) }}
    }{{ "," if not loop.last }}
{% endfor %}
]```
{% elif message.content is string %}
{{ message.content | replace("<", "&lt;") | replace(">", "&gt;") }}
{% elif message.content is sequence %}
{{ message.content | selectattr("type", "equalto", "text") | map(attribute="text") | map("trim") | join("\\n") }}
{% else %}
{{ message.content | default("nothing", true) }}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}<|T|>CHATBOT
{% endif %}
"""

TEMPLATES = {"ChatML": CHATML, "Llama 3": LLAMA_3, "Mistral": MISTRAL, "Gemma": GEMMA, "Qwen 3": QWEN_3, "DeepSeek": DEEPSEEK,
             "gpt-oss": HARMONY, "Phi": PHI, "Granite": GRANITE, "Command R": COMMAND_R}

TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "the weather of a place, today or later,\nand of many places", "parameters": {
        "type": "object", "properties": {
            "place": {"type": "string", "description": "a town such as Zürich or 東京"},
            "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
            "days": {"type": ["integer", "null"], "description": "how many days, counted from the day after this one", "default": 1},
            "tags": {"type": "array", "items": {"type": "string"}}, "grid": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "where": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat"]},
            "either": {"oneOf": [{"type": "string", "description": "a name"}, {"type": "boolean", "default": False}]},
            "extra": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "required": ["place"]}}},
    {"type": "function", "function": {"name": "stop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
SYSTEM = {"role": "system", "content": "  You are terse.\nYou speak \"plainly\" & <well>. "}
TEXTS = ["Hello", "  What is 2 + 2?\n", "Grüße 漢字 🙂", "", "line one\n\nline two\t'quoted' \"twice\" \\ {{ not }} {% code %} <|im_end|>", "</think>x"]
CALL = {"type": "function", "id": "abcdefghi", "function": {"name": "weather", "arguments": {"place": "Zürich", "days": 2, "grid": [[1.5, 2]], "where": None, "ok": True}}}
PARTS = [{"type": "text", "text": " What is this? "}, {"type": "image"}, {"type": "text", "text": "und das?"}]


def conversations():
    """Variables for a template, of every sort: with and without system, tools, calls and their results, thinking, parts."""
    say = lambda text: {"role": "assistant", "content": text}
    ask = lambda content: {"role": "user", "content": content}
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": "{\"sky\": \"blue\"}"}
    bodies = [[ask(text)] for text in TEXTS]
    bodies += [[ask("a"), say("b"), ask("c")], [ask("a"), say("b")], [ask(PARTS)], [ask(PARTS), say("A cat."), ask("sure?")], [],
               [ask("x"), called, result], [ask("x"), called, result, say("It is blue.")], [ask("x"), called, result, result, say("blue"), ask("y")],
               [ask("x"), {**called, "content": "I look."}, result], [ask("x"), {**called, "tool_calls": [CALL, {**CALL, "id": "123456789"}]}, result, result],
               [ask("x"), {**called, "thinking": "look", "reasoning_content": "\nlook\n"}, result, {**say("blue"), "thinking": "so", "reasoning_content": "so it is\n"}],
               [ask("x"), say("<think>\nhm\n</think>\n\nyes"), ask("z")], [ask("x"), say("<think>hm</think>yes")], [say("first")], [ask("a"), ask("b")],
               [ask("a"), say("b"), {"role": "narrator", "content": "c"}], [ask(None)], [ask(5)], [{"role": "user"}],
               [ask("x"), {**called, "tool_calls": [{**CALL, "function": {"name": "stop", "arguments": "{\"a\": 1}"}}]}, {**result, "content": {"content": 7}}],
               [ask("x"), result], [SYSTEM, ask("again")], [ask("x"), {"role": "assistant", "content": "y", "tool_calls": None}, ask("z")]]
    draw = random.Random(7)
    for body, system, tools in itertools.product(bodies, (False, True), (None, TOOLS)):
        if draw.random() < 0.5:
            continue
        variables = {"messages": ([SYSTEM] if system else []) + body, "add_generation_prompt": draw.random() < 0.5,
                     "bos_token": "<s>", "eos_token": "</s>"}
        if tools or draw.random() < 0.5:
            variables["tools"] = tools
        for name, value in (("enable_thinking", False), ("documents", [{"text": "first\nsecond"}, {"id": "b", "text": ""}]), ("reasoning_effort", "low"),
                            ("date_string", "26 Jul 2026"), ("tools_in_user_message", False), ("custom_tools", TOOLS[1:])):
            if draw.random() < 0.2:
                variables[name] = value
        yield variables
