-- Loads one script into an environment of its own and returns its function, or nil and what is wrong.
local trusted, source, name = ...

local load, rawget, type, find = load, rawget, type, string.find

local environment = trusted.new_environment(trusted.fila)
trusted.environment = environment

-- "t": text only. Bytecode made by hand can crash the interpreter.
trusted.compile = function()
  -- Under a pcall of our own, because the caller's error handler would add a traceback.
  local ok, chunk, problem = trusted.raw_pcall(load, source, "=" .. name, "t", environment)
  if not ok then
    return chunk
  elseif problem and find(problem, "^C stack overflow") then
    return name .. ": the script nests too deeply"
  end
  trusted.chunk = chunk
  return problem
end

-- Runs the script's top level once, under the limits of a call.
trusted.define = function(ceiling, kept_max)
  trusted.set_kept_max(kept_max)
  trusted.see_config(0, ceiling)
  trusted.begin_batch(0)
  trusted.begin_call()
  local ok, problem = trusted.limited(trusted.chunk)
  trusted.chunk = nil
  if not ok then
    local kind, text = trusted.explain(problem)
    return kind, text
  end
  local hook = rawget(environment, name)
  if type(hook) ~= "function" then
    return "error", "the script does not define function " .. name .. "(msg)"
  end
  trusted.hook = hook
  return nil
end
