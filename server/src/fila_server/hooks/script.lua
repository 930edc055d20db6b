-- Loads one script into an environment of its own and returns its function, or nil and what is wrong.
local trusted, source, name = ...

local load, rawget, type = load, rawget, type

local FRAME = trusted.FRAME

local environment = trusted.new_environment(trusted.fila)
trusted.environment = environment

-- "t": text only. Bytecode made by hand can crash the interpreter.
trusted.compile = function()
  local chunk, problem = load(source, "=" .. name, "t", environment)
  trusted.chunk = chunk
  return problem
end

-- Runs the script's top level once, under the limits of a call.
local function define(frame, ceiling)
  trusted.see_config(0, ceiling)
  trusted.begin_batch(FRAME)
  trusted.begin_call(FRAME)
  local ok, problem = trusted.raw_pcall(trusted.chunk)
  trusted.end_batch(FRAME)
  trusted.chunk = nil
  if not ok then
    local kind, text = trusted.explain(FRAME, problem)
    return kind, text
  end
  local hook = rawget(environment, name)
  if type(hook) ~= "function" then
    return "error", "the script does not define function " .. name .. "(msg)"
  end
  trusted.hook = hook
  return nil
end

trusted.define = function(ceiling)
  return define(FRAME, ceiling)
end
